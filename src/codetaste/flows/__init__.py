"""One coroutine per flow: each turns config and benchmark into jobs."""
