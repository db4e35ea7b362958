"""Links to the site's pages, and whom a reader's browser asks for posters."""

from __future__ import annotations

import pytest

from douban_pipeline.core.database import reading
from douban_pipeline.douban.reports.video_site import VideoSite, posters_of
from douban_pipeline_tests.harness.fixtures.library import Library, video

PAGE = "/index.php/vod/detail/id/{id}.html"
SITE = VideoSite("https://site.example.org", PAGE)
SERVED = VideoSite("https://site.example.org", PAGE, service="https://review.example.org/review/")
OWN, ELSEWHERE = "upload/vod/1.jpg", "https://img.example.net/p1.jpg"


@pytest.mark.parametrize(
    ("site", "stored", "poster"),
    [
        (VideoSite(), OWN, ""),
        (VideoSite(), ELSEWHERE, ""),
        (SITE, OWN, "https://site.example.org/upload/vod/1.jpg"),
        (SITE, "/upload/1.jpg", "https://site.example.org/upload/1.jpg"),
        (SITE, ELSEWHERE, ""),
        (SITE, "https://site.example.org.evil.net/1.jpg", ""),
        (SITE, "", ""),
        (SERVED, ELSEWHERE, "https://review.example.org/review/picture/video/7"),
        (SERVED, "", ""),
        (VideoSite(), "javascript:alert(1)", ""),
    ],
)
def test_a_poster_is_the_sites_own_or_the_services(site, stored, poster):
    assert site.poster(7, stored) == poster
    assert not poster or poster.startswith(site.pictures)


@pytest.mark.parametrize(
    ("site", "sources"),
    [
        (VideoSite(), ""),
        (SITE, "https://site.example.org"),
        (SERVED, "https://review.example.org"),
    ],
)
def test_a_page_may_load_pictures_from_there_alone(site, sources):
    assert site.image_sources == sources


def test_a_page_is_linked_where_the_site_is_known():
    assert SITE.address(7) == "https://site.example.org/index.php/vod/detail/id/7.html"
    assert VideoSite(page=PAGE).address(7) == ""
    assert VideoSite("https://site.example.org").address(7) == ""


def test_posters_are_read_of_the_videos_that_are_there(shared_library: Library):
    rows = [video(1, vod_pic=OWN), video(2, vod_pic=ELSEWHERE), video(3)]
    library = shared_library.renewed(rows, site_url="https://site.example.org/")
    with reading(library.engine) as connection:
        assert posters_of(library.services, connection, {1, 2, 4}) == {1: f"https://site.example.org/{OWN}", 2: ""}
