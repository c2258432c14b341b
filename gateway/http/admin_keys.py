"""``/admin/keys``: make, list, show and revoke keys over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from gateway.errors import GatewayError, InvalidRequestError, NotFoundError
from gateway.http.admin_guard import admins_only, only_known_query
from gateway.http.strict_bodies import StrictBodyRoute
from gateway.services import Services
from gateway.storage.errors import InvalidKeyError, KeyExistsError, KeyNotFoundError
from gateway.storage.key_record import public_fields
from gateway.storage.keys import KeyStore

_MAX_PAGE: Final = 500
_KEY_ID: Final = r"^key_[0-9a-f]{16}$"


class NewKey(BaseModel):
    """The body of ``POST /admin/keys``."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=200)
    models: list[str] | None = Field(None, max_length=100, description="Patterns with * and ?; null allows all models.")
    expires_in_seconds: float | None = Field(None, gt=0, description="null: never.")
    secret: SecretStr | None = Field(None, description="An existing key to import; one is made when left out.")


class KeyOut(BaseModel):
    """A key without its secret."""

    object: Literal["key"] = "key"
    id: str
    name: str
    prefix: str
    models: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class NewKeyOut(KeyOut):
    """A key that was just made; *secret* is shown this once."""

    secret: str


class KeyPage(BaseModel):
    """Keys, newest first. *next_cursor* is the ``cursor`` of the next page, or null on the last."""

    object: Literal["list"] = "list"
    data: list[KeyOut]
    next_cursor: str | None


def router(services: Services) -> APIRouter:
    """The routes, all behind the admin key."""
    store: KeyStore = services.keys
    routes = APIRouter(
        prefix="/admin/keys",
        tags=["keys"],
        dependencies=[admins_only(services), only_known_query],
        route_class=StrictBodyRoute,
    )

    @routes.post("", status_code=201)
    async def create_key(new: NewKey) -> NewKeyOut:
        try:
            key, secret = await store.create(
                new.name,
                models=new.models,
                expires_in=new.expires_in_seconds,
                secret=None if new.secret is None else new.secret.get_secret_value(),
            )
            record = await store.get(key.id)
        except (KeyExistsError, InvalidKeyError) as error:
            raise _as_answer(error) from None
        return NewKeyOut(**public_fields(record), secret=secret)

    @routes.get("")
    async def list_keys(
        limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 100,
        cursor: Annotated[str | None, Query(pattern=_KEY_ID)] = None,
    ) -> KeyPage:
        try:
            records = await store.page(limit=limit + 1, after=cursor)
        except KeyNotFoundError as error:
            raise InvalidRequestError(error.message, param="cursor") from None
        more = len(records) > limit
        data = [KeyOut(**public_fields(record)) for record in records[:limit]]
        return KeyPage(data=data, next_cursor=data[-1].id if more else None)

    @routes.get("/{key_id}")
    async def show_key(key_id: str) -> KeyOut:
        try:
            record = await store.get(key_id)
        except KeyNotFoundError as error:
            raise _as_answer(error) from None
        if record.key.id != key_id:
            raise NotFoundError("A key is asked for by its whole id here.", code="key_not_found")
        return KeyOut(**public_fields(record))

    @routes.delete("/{key_id}")
    async def revoke_key(key_id: str) -> KeyOut:
        """Revoke a key; a second time changes nothing. This process refuses it at once, the others within 2 seconds."""
        try:
            record = await store.revoke(key_id)
            await services.authenticator.poll()
        except KeyNotFoundError as error:
            raise _as_answer(error) from None
        return KeyOut(**public_fields(record))

    return routes


def _as_answer(error: KeyNotFoundError | KeyExistsError | InvalidKeyError) -> GatewayError:
    if isinstance(error, KeyNotFoundError):
        return NotFoundError(error.message, code="key_not_found")
    return InvalidRequestError(error.message)
