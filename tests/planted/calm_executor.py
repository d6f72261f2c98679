# Asyncio's executor gets three short tasks now and then: its threads wait for work most of the time.
# cause: none
import asyncio


async def main():
    loop = asyncio.get_running_loop()
    for _ in range(80):
        await asyncio.gather(*[loop.run_in_executor(None, sum, range(20000)) for _ in range(3)])
        await asyncio.sleep(0.02)


asyncio.run(main())
