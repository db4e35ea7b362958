"""Settles many groups of duplicates at once: in each, one video keeps the id by the given rule, the others lose it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.reports.lists.duplicate_groups import linked_conditions, members_of, shared_sizes
from douban_pipeline.douban.reports.lists.keepers import GroupMember, KeeperRule, keep_reason, ranked
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction

MOST_GROUPS = 1000
"""Most groups of one launch."""


@dataclass(frozen=True, slots=True)
class SettledGroup:
    """The proposal for one group: which video keeps the id and why, which lose it, and which are locked."""

    douban_id: int
    keep: GroupMember
    why: str
    cleared: tuple[GroupMember, ...]
    locked: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class Settlement:
    """The settled groups, subjects without a group (fewer than two videos have them), and groups that are too large."""

    groups: tuple[SettledGroup, ...]
    no_groups: tuple[int, ...]
    too_large: tuple[int, ...]

    @property
    def decisions(self) -> list[Decision]:
        """Return a decision for every video that loses its id."""
        return [
            Decision(member.vod_id, DecisionAction.clear_id, where=f"条目 {group.douban_id} 的影片 {member.vod_id}")
            for group in self.groups
            for member in group.cleared
        ]


def settlement(
    services: Services, douban_ids: Sequence[int], keeper: KeeperRule, *, every_group: bool, most: int, largest: int
) -> Settlement:
    """Return the proposal for the requested groups.

    Args:
        services: Database and settings.
        douban_ids: The subjects that the groups share.
        keeper: The rule by which one video of each group keeps the id.
        every_group: Take all groups, the smallest first; ``douban_ids`` is empty then.
        most: Most groups.
        largest: Groups of more videos are left to a person: an id that hundreds share was written by a program.

    Raises:
        ProblemsError: Neither subjects nor all groups are requested, or both; or a number is out of range.
    """
    problems = []
    if bool(douban_ids) == every_group:
        problems.append("douban_ids、every_group: 请填写其一")
    if not 1 <= most <= MOST_GROUPS or len(set(douban_ids)) > MOST_GROUPS:
        problems.append(f"most: 一次最多 {MOST_GROUPS} 组")
    if largest < 2:
        problems.append(f"largest: 一组至少两部，现为 {largest}")
    if problems:
        raise ProblemsError(problems)
    sizes = _sizes(services, sorted(set(douban_ids)))
    too_large = tuple(douban_id for douban_id, size in sizes.items() if size > largest)
    taken = [douban_id for douban_id in sizes if douban_id not in set(too_large)][:most]
    groups = tuple(_settled(services, taken, keeper))
    return Settlement(groups, tuple(sorted(set(douban_ids) - sizes.keys())), too_large)


def _sizes(services: Services, douban_ids: Sequence[int]) -> dict[int, int]:
    """Return how many videos share each subject, the fewest first; for all subjects if none are named."""
    with reading(services.engine) as connection:
        found = shared_sizes(services, connection, douban_ids)
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def _settled(services: Services, douban_ids: Sequence[int], keeper: KeeperRule) -> Iterable[SettledGroup]:
    video, zone = services.tables.video, services.settings.zone
    for chunk in chunks(douban_ids, 50):
        with reading(services.engine) as connection:
            query = select(video.c.vod_id).where(video.c.vod_douban_id.in_(chunk), *linked_conditions(services))
            members = members_of(services, connection, list(connection.execute(query).scalars()))
        for douban_id in chunk:
            group = ranked([each for each in members.values() if each.douban_id == douban_id], keeper)
            if len(group) > 1:
                best, *others = group
                yield SettledGroup(
                    douban_id,
                    best,
                    keep_reason(best, others[0], keeper, zone),
                    tuple(each for each in others if not each.locked),
                    tuple(each for each in others if each.locked),
                )
