"""The store that a command works on: found or started, migrated, open. What is done with it stands beside this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from weft.settings import Project, Settings
from weft.store import projects
from weft.store.embedded import embedded_server
from weft.store.migrate import migrate
from weft.store.pool import Database


@dataclass(frozen=True, slots=True)
class Store:
    """An open, migrated database."""

    database: Database
    url: str
    settings: Settings

    async def project_number(self, project: Project) -> int:
        async with self.database.connection() as connection:
            return await projects.ensure(connection, project.id, project.name)


@asynccontextmanager
async def open_store(settings: Settings, *, pool_size: int = 4) -> AsyncIterator[Store]:
    """The database that the settings name, else the embedded one, started if need be; migrated either way."""
    async with AsyncExitStack() as stack:
        url = settings.database_url
        if url is None:
            url = await stack.enter_async_context(embedded_server(settings.data_folder, tools=settings.postgres_tools))
        database = await Database.open(url, pool_size=pool_size)
        stack.push_async_callback(database.close)
        async with database.connection() as connection:
            await migrate(connection)
        yield Store(database, url, settings)
