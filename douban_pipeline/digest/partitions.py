"""The partitions of the digest: a day and one of its slots, such as ``2026-11-20|07:00``."""

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.digest.slots import SlotKey

FIRST_DAY = "2026-01-01"
DATE, SLOT = "date", "slot"


def partitions_for(slots: Sequence[str], time_zone: str) -> dg.MultiPartitionsDefinition:
    """Return the partitions; today's exist from midnight on, because the slot of 07:00 must be runnable at 07:00."""
    days = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone=time_zone, end_offset=1)
    return dg.MultiPartitionsDefinition({DATE: days, SLOT: dg.StaticPartitionsDefinition([*slots])})


def partition_of(key: SlotKey) -> dg.MultiPartitionKey:
    """Return the partition of a slot."""
    return dg.MultiPartitionKey({DATE: key.run_date.isoformat(), SLOT: key.slot})
