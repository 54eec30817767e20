"""What the framework refuses by itself says what to do, too."""

from __future__ import annotations

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from ces_manager.api.problems import MEDIA_TYPE, install


async def test_an_unknown_path_and_a_wrong_method_name_what_there_is() -> None:
    app = FastAPI()
    install(app)

    @app.get("/v1/jobs")
    def _jobs() -> dict[str, str]:
        return {}

    async with AsyncClient(transport=ASGITransport(app), base_url="http://manager") as client:
        for method, path, status, said in (
            ("GET", "/v1/jbos", 404, "there is no /v1/jbos: /openapi.json lists what there is"),
            ("PATCH", "/v1/jobs", 405, "/v1/jobs has no PATCH: it takes GET"),
        ):
            answer = await client.request(method, path)
            assert (answer.status_code, answer.headers["content-type"]) == (status, MEDIA_TYPE)
            assert answer.json()["detail"] == said
        assert len((await client.get("/" + "x" * 5000)).json()["detail"]) < 300
