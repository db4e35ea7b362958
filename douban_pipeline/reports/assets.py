"""Unpartitioned reports for people. Assets that compare across shards and write nothing belong here."""

import dagster as dg

from douban_pipeline.presentation import Markdown, subject_link, table
from douban_pipeline.reports.duplicates import Group, duplicate_groups
from douban_pipeline.services import Services
from douban_pipeline.syncing.assets import synced_fields

_SHOWN = 50


@dg.asset(deps=[synced_fields], group_name="reports", kinds={"mysql", "python"})
def duplicate_reports(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Groups of videos that may be one: by shared Douban id, and by equal name, number, year and kind.

    The first of a group is the one most worth keeping (linked, then most watched, then earliest). Nothing is merged
    or deleted by the machine: a person decides in the CMS.
    """
    services.ready()
    groups = duplicate_groups(services)
    by_subject = [group for group in groups if group.by == "subject"]
    by_title = [group for group in groups if group.by == "title"]
    return dg.MaterializeResult(
        metadata={
            "groups_by_subject": len(by_subject),
            "groups_by_title": len(by_title),
            "videos": sum(len(group.members) for group in groups),
            "by_subject": dg.MetadataValue.md(table([_shown(group) for group in by_subject], most=_SHOWN)),
            "by_title": dg.MetadataValue.md(table([_shown(group) for group in by_title], most=_SHOWN)),
        }
    )


def _shown(group: Group) -> dict[str, object]:
    keep, *others = group.members
    shared = subject_link(int(group.key)) if group.by == "subject" else Markdown("")
    return {
        "shared": shared or group.key,
        "videos": len(group.members),
        "keep": f"{keep.vod_id} {keep.title}",
        "others": "; ".join(f"{member.vod_id} {member.title}" for member in others),
    }


assets = [duplicate_reports]
