"""What a scraper may ask for."""

from http import HTTPStatus

import pytest
from tabwarden_observability.scrape_request import MAX_HEAD, ScrapeRefused, answer, judge, own_hosts, whole

HOSTS = own_hosts("127.0.0.1", 9464)


def request(line: str = "GET /metrics HTTP/1.1", host: str = "Host: localhost:9464", *more: str) -> bytes:
    fields = [field for field in (host, *more) if field]
    return "\r\n".join([line, *fields, "", ""]).encode()


@pytest.mark.parametrize(
    "data",
    [
        request(),
        request(host="HOST: LocalHost:9464"),
        request(host="Host: 127.0.0.1:9464"),
        request(
            "GET /metrics HTTP/1.1",
            "Host: 127.0.0.1:9464",
            "User-Agent: Prometheus/3.1",
            "Accept: application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.1",
            "Accept-Encoding: gzip",
            "X-Prometheus-Scrape-Timeout-Seconds: 10",
            "Connection: keep-alive",
        ),
    ],
)
def test_a_scraper_is_let_in(data: bytes) -> None:
    assert whole(data)
    judge(data, HOSTS)


def test_an_ipv6_address_stands_in_brackets() -> None:
    judge(request(host="Host: [::1]:9464"), own_hosts("::1", 9464))


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request("POST /metrics HTTP/1.1"), 405),
        (request("HEAD /metrics HTTP/1.1"), 405),
        (request("OPTIONS /metrics HTTP/1.1"), 405),
        (request("GET / HTTP/1.1"), 404),
        (request("GET /metrics/ HTTP/1.1"), 404),
        (request("GET /metrics?name[]=x HTTP/1.1"), 404),
        (request("GET http://localhost:9464/metrics HTTP/1.1"), 404),
        # DNS rebinding: a page's own name, which leads here.
        (request(host="Host: evil.test:9464"), 403),
        (request(host="Host: localhost.evil.test:9464"), 403),
        (request(host="Host: localhost:9465"), 403),
        (request(host="Host: localhost"), 403),
        (request(host="Host: 127.0.0.2:9464"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Origin: https://evil.test"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Origin: null"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Sec-Fetch-Site: cross-site"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "sec-fetch-site: none"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Referer: https://evil.test/"), 403),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Cookie: a=b"), 403),
        (request(host=""), 400),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Host: localhost:9464"), 400),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Content-Length: 0"), 400),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Transfer-Encoding: chunked"), 400),
        (
            request("GET /metrics HTTP/1.1", "Host: localhost:9464", "Upgrade: h2c", "Connection: upgrade"),
            400,
        ),
        (request("GET /metrics HTTP/1.1", "Host: localhost:9464", *(f"X-{n}: 1" for n in range(40))), 400),
        (request("GET /metrics HTTP/1.0"), 400),
        (request("GET /metrics HTTP/9.9"), 400),
        (request("get /metrics HTTP/1.1"), 400),
        (request() + request(), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
    ],
)
def test_all_else_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(ScrapeRefused) as refused:
        judge(data, HOSTS)
    assert refused.value.status == status


def test_a_request_may_not_grow() -> None:
    assert not whole(b"GET /metrics HTTP/1.1\r\n")
    assert not whole(b"x" * MAX_HEAD)
    with pytest.raises(ScrapeRefused) as refused:
        whole(b"x" * (MAX_HEAD + 1))
    assert refused.value.status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_an_answer_is_nothing_that_a_page_can_use() -> None:
    head, _, body = answer(HTTPStatus.OK, b"up 1\n").partition(b"\r\n\r\n")
    assert body == b"up 1\n"
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert {
        b"content-type: text/plain; version=0.0.4; charset=utf-8",
        b"content-length: 5",
        b"cache-control: no-store",
        b"x-content-type-options: nosniff",
        b"cross-origin-resource-policy: same-origin",
        b"connection: close",
    } == set(lines[1:])
    assert b"\r\nallow: GET\r\n" in answer(HTTPStatus.METHOD_NOT_ALLOWED)
    assert answer(HTTPStatus.FORBIDDEN).endswith(b"\r\n\r\nForbidden\n")
