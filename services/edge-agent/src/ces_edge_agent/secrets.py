"""The secrets of workers: asked of the manager when one starts, and kept nowhere. The answer is sealed to the key that
the node has joined with."""

from __future__ import annotations

from collections.abc import Mapping

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, NoResponder, RemoteError
from ces_common.messages.desired import DesiredWorker
from ces_common.messages.secrets import GONE, STARTED, SecretsQuery, TaskSecrets
from ces_common.natsauth.keys import BadKey
from ces_common.natsauth.sealed_messages import unseal
from ces_edge_agent.ports import NO_SECRETS, Refused

LARGEST = 4 * 2**20  # bytes of an answer


class SecretsAway(Exception):
    """They cannot be had now; worth trying again. The text says why."""


class StartedBefore(Exception):
    """The manager knows from this node that the worker has run: it is not to be started a second time."""


class Secrets:
    """``seed``: of the node's key."""

    def __init__(self, bus: Bus, node: str, seed: str) -> None:
        self._bus, self._node, self._seed = bus, node, seed

    async def of(self, worker: DesiredWorker) -> Mapping[str, bytes]:
        """File -> content, of all that the worker needs. Raises SecretsAway, Refused where one is stored no more,
        and StartedBefore."""
        if not worker.secrets:
            return NO_SECRETS
        query = SecretsQuery(allocation=worker.allocation, incarnation=worker.incarnation)
        try:
            sealed = await self._bus.request(subjects.secrets(self._node), query.encode(), largest=LARGEST)
            files = TaskSecrets.model_validate_json(unseal(self._seed, sealed)).files
        except RemoteError as error:
            if error.code == GONE:
                raise Refused(error.message) from error
            if error.code == STARTED:
                raise StartedBefore(error.message) from error
            raise SecretsAway(error.message) from error
        except NoResponder as error:
            raise SecretsAway("no manager answers") from error
        except (BusError, BadKey) as error:
            raise SecretsAway(str(error)) from error
        except ValueError:
            raise SecretsAway("the manager's answer cannot be read") from None  # the cause would show what is in it
        missing = [name for name in worker.secrets if name not in files]
        if missing:
            raise SecretsAway(f"the manager's answer lacks {', '.join(missing)}")
        return {name: files[name] for name in worker.secrets}
