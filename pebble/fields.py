"""Integers of a shape's fields, checked one by one."""

from __future__ import annotations

from collections.abc import Sequence

from pebble.errors import InputError


def integers(field: str, values: Sequence[int], least: int) -> tuple[int, ...]:
    """The values as Python integers of at least ``least``; raises ``InputError`` otherwise."""
    found = []
    for value in values:
        try:
            number = value.__index__()
        except AttributeError:
            raise InputError(field, value, "is not an integer") from None
        if isinstance(value, bool) or number < least:
            raise InputError(field, tuple(values), f"every number must be at least {least}")
        found.append(number)
    return tuple(found)


def check_capacity(capacity_words: int) -> None:
    """Raise ``InputError`` for a fast memory that holds no word."""
    if capacity_words < 1:
        raise InputError("capacity", capacity_words, "must be at least 1 word")


def per_axis(
    field: str, values: Sequence[int] | None, rank: int, default: int, least: int = 1
) -> tuple[int, ...]:
    """One integer a spatial axis, or the default on every axis for None."""
    if values is None:
        return (default,) * rank
    numbers = integers(field, values, least)
    if len(numbers) != rank:
        raise InputError(field, numbers, f"must hold {rank} numbers, one a spatial axis")
    return numbers


def channel_counts(
    channels: int, weight: tuple[int, ...], group: int, transposed: bool
) -> tuple[int, int]:
    """Input and output channels over all groups, from the input's channels and the weight.

    Raises:
        InputError: weight, group and input do not agree.
    """
    if transposed:
        if weight[0] != channels:
            raise InputError(
                "weight", weight, f"has {weight[0]} input channels where the input has {channels}"
            )
        if channels % group:
            raise InputError("group", group, f"does not divide the {channels} input channels")
        return channels, weight[1] * group
    if weight[1] * group != channels:
        raise InputError(
            "weight",
            weight,
            f"has {weight[1]} channels a group; {weight[1]} * group {group} is not the input's "
            f"{channels} channels",
        )
    if weight[0] % group:
        raise InputError("group", group, f"does not divide the {weight[0]} output channels")
    return channels, weight[0]
