"""The toy's part of the HTTP service."""

from fastapi import APIRouter

from douban_pipeline.core.mounts import Mount


def mounts(_guard):
    """Yield a page."""
    router = APIRouter()
    router.get("/")(lambda: "hello")
    yield Mount("toy", router, prefix="/toy")
