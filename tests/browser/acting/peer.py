"""The peer: fills the same form through Playwright. `python peer.py CHROMIUM URL STEPS`, run by test_peer.py.

A program of its own, because Playwright needs asyncio. STEPS is JSON: [[action, selector, value], ...].
"""

import asyncio
import json
import sys

from playwright.async_api import async_playwright


async def main(chromium: str, url: str, steps: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(url)
        for action, selector, value in json.loads(steps):
            if action == "type":
                await page.fill(selector, value)
            elif action == "select":
                await page.select_option(selector, value)
            elif action == "check":
                await page.set_checked(selector, value)
            else:
                await page.click(selector)
        sys.stdout.write(json.dumps(await page.evaluate("state()")))
        await browser.close()


asyncio.run(main(*sys.argv[1:]))
