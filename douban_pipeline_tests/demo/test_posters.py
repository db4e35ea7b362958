"""The demo's posters: pictures that the review sheet accepts, one for each subject, without a request."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.pictures import kept_picture, media_type_of
from douban_pipeline.demo.posters import HEIGHT, WIDTH, drawn_poster, put_posters
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.stand_ins.answers import douban_fields


def test_every_subject_has_a_picture_of_its_own_where_the_service_looks(tmp_path: Path):
    subjects = list(load_subjects())
    put_posters(tmp_path, subjects)
    found = {}
    for subject in subjects:
        body = kept_picture(tmp_path, picture_address(douban_fields(subject)["vod_pic"], "")).read_bytes()
        assert media_type_of(body) == "image/png"
        found[subject["id"]] = body
    assert len(set(found.values())) == len(subjects)


def test_a_picture_is_whole_and_the_same_every_time():
    body = drawn_poster(1_291_543)
    assert body == drawn_poster(1_291_543)
    chunks, at = {}, 8
    while at < len(body):
        (size,) = struct.unpack(">I", body[at : at + 4])
        kind, held = body[at + 4 : at + 8], body[at + 8 : at + 8 + size]
        assert struct.unpack(">I", body[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + held),)
        chunks[kind] = held
        at += 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (WIDTH, HEIGHT)
    assert len(zlib.decompress(chunks[b"IDAT"])) == HEIGHT * (1 + 3 * WIDTH)


def test_a_picture_that_is_there_is_left_alone(tmp_path: Path):
    subjects = list(load_subjects())[:1]
    put_posters(tmp_path, subjects)
    [path] = (tmp_path / "cache" / "posters").iterdir()
    path.write_bytes(b"fetched")
    put_posters(tmp_path, subjects)
    assert path.read_bytes() == b"fetched"
