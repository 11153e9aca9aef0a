"""`CalibrationStore`: recorded calls with scores and labels, in one SQLite file or a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

from rag_confidence._calls import CallRecord, ToolCallContext, check_moment
from rag_confidence._history import GroupName
from rag_confidence._options import check_choice, check_flag, check_integer, check_number, check_text
from rag_confidence._types import Decision
from rag_confidence.errors import StoreError
from rag_confidence.store.access import opened
from rag_confidence.store.backend import Synchronous
from rag_confidence.store.entries import (
    entries_of_labels,
    entries_of_records,
    label_entry,
    record_entry,
)
from rag_confidence.store.exporting import export, writer_for
from rag_confidence.store.importing import Import, ImportReport, OnError
from rag_confidence.store.log_lines import Keys
from rag_confidence.store.retention import check_limits, forget
from rag_confidence.store.rows import record_of
from rag_confidence.store.statements import COLUMNS, Conditions, filter_of, pages
from rag_confidence.store.stored_history import COLUMNS as HISTORY_COLUMNS
from rag_confidence.store.stored_history import StoredHistory, history_of
from rag_confidence.store.summary import StoreSummary, summarize

_LONGEST_WAIT = 86_400.0
_STALE = timedelta(days=90)


class CalibrationStore:
    """Calls with their scores and outcomes, from which guards and gates are calibrated.

    Calls and labels are only ever added: a later label of a call takes the place of an earlier one in what is
    read, and both stay. Only `prune` deletes.

    Parameters
    ----------
    path : str or path-like
        A file, made with its folders where there is none; or a URL such as
        ``postgresql+psycopg://user@host/database`` (extra ``postgres``).
    synchronous : {"full", "normal"}
        When a write returns. "full": it survives a loss of power. "normal": it survives a crash of the
        process, and the last ones may be lost with the power or the server; never a half of one.
    create : bool
        Whether to make a store where there is none.
    migrate : bool
        Whether to bring an older store up to the schema of this release. False opens it as it is, only to
        read `schema_version` and to call `migrate`.
    wait : float
        Seconds that a write waits for other writers.

    Raises
    ------
    StoreError
        Where something else is there, which is then left as it is; and for every later failure to read or
        write. A write that failed left nothing behind.

    Notes
    -----
    All methods may be called from any thread, and from any number of processes. Writes of several threads are
    committed together; each returns after its own commit. Reading neither waits for writers nor makes them
    wait. A store that was opened before a fork works in the child, and a pickled one is opened again by its
    path. Numbers of calls ascend in the order of commits and are never used twice.

    Examples
    --------
    >>> CalibrationStore("no-such-folder/calls.db", create=False)
    Traceback (most recent call last):
    rag_confidence.errors.StoreError: `path` must be a calibration store that exists; got ...
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "full",
        create: bool = True,
        migrate: bool = True,
        wait: float = 30.0,
    ) -> None:
        check_choice("synchronous", synchronous, ("full", "normal"))
        self._options: dict[str, Any] = {
            "synchronous": synchronous,
            "migrate": check_flag("migrate", migrate),
            "wait": check_number("wait", wait, 0.0, _LONGEST_WAIT, "Pass seconds."),
        }
        self._access = opened(path, create=check_flag("create", create), **self._options)

    def add(
        self,
        context: ToolCallContext,
        outcome: bool | None = None,
        *,
        scores: Mapping[str, float] | None = None,
        fingerprints: Mapping[str, str] | None = None,
        labeling_source: str | None = None,
        group: GroupName | None = None,
        decision: Decision | None = None,
        calibrator: str | None = None,
        recorded_at: datetime | None = None,
    ) -> int:
        """Record one call; its number, once it is committed.

        Parameters
        ----------
        context : ToolCallContext
            Its arguments, result and metadata must be values of JSON; tuples come back as lists.
        outcome : bool, optional
            Whether the call was good; None while nobody knows (see `label`).
        scores, fingerprints : mapping, optional
            Nonconformity by check, and the fingerprint of the scorer behind each.
        labeling_source : str, optional
            Who or what decided on the outcome.
        group, decision, calibrator
            As in `CallRecord`.
        recorded_at : datetime, optional
            When the call was made; by default now.

        Raises
        ------
        TypeError, ValueError
            For what cannot be kept as it is, before anything is written.
        StoreError
            If it could not be committed.
        """
        return self.add_record(
            CallRecord(
                context=context,
                outcome=outcome,
                scores=scores or {},
                fingerprints=fingerprints or {},
                labeling_source=labeling_source,
                group=group,
                decision=decision,
                calibrator=calibrator,
                recorded_at=recorded_at,
            )
        )

    def add_record(self, record: CallRecord) -> int:
        """Record a `CallRecord`; its new number. An `id` that it has already is not kept."""
        entry = record_entry(record, datetime.now(UTC))
        return self._access.write(lambda work: work.add(*entry))

    def add_many(self, records: Iterable[CallRecord | tuple[ToolCallContext, bool | None]]) -> list[int]:
        """Record many calls, all or none; their numbers in the same order."""
        entries = entries_of_records(records, datetime.now(UTC))
        return self._access.write(lambda work: [work.add(*entry) for entry in entries], alone=True)

    def label(
        self, call_id: int, outcome: bool, labeling_source: str, *, labeled_at: datetime | None = None
    ) -> None:
        """Say whether a recorded call was good; of several labels the one that was written last counts.

        Raises
        ------
        ValueError
            If there is no such call, and for outcomes that are not booleans, 0 or 1.
        """
        entry = label_entry(call_id, outcome, labeling_source, labeled_at=labeled_at)
        self._access.write(lambda work: work.label(*entry))

    def label_many(
        self, labels: Iterable[tuple[int, bool]], labeling_source: str, *, labeled_at: datetime | None = None
    ) -> None:
        """Label many calls, (number, outcome) each: all or none."""
        entries = entries_of_labels(labels, labeling_source, labeled_at)
        self._access.write(lambda work: work.label_all(entries), alone=True)

    def query(self, **conditions: Unpack[Conditions]) -> list[CallRecord]:
        """Recorded calls in the order of their numbers.

        Parameters
        ----------
        tool_name, group, outcome, labeling_source : optional
            Calls whose value equals this one; the outcome is that of the latest label.
        labelled : bool, optional
            Only calls with a label, or only those without.
        since, until : datetime, optional
            Calls recorded from `since` on and before `until`; those of an unknown time are left out.
        after_id : int, optional
            Only calls with a larger number.
        limit : int, optional
            At most so many, the earliest.

        Returns
        -------
        list of CallRecord
            Equal to what was written, to the last bit. Pass them to `rag_confidence.guard.calibrate`.
        """
        chosen = filter_of(**conditions)
        return [record_of(row) for row in self._access.rows(chosen.in_order(COLUMNS), chosen.values)]

    def iterate(self, **conditions: Unpack[Conditions]) -> Iterator[CallRecord]:
        """The same as `query`, read page by page: for more calls than memory holds.

        Nothing is kept open between pages, so what is labelled meanwhile may show.
        """
        # Checked now, not at the first step.
        filter_of(**conditions)
        return pages(self.query, conditions)

    def count(self, **conditions: Unpack[Conditions]) -> int:
        """How many calls `query` would return."""
        chosen = filter_of(**conditions)
        if chosen.limit is None:
            sql = chosen.select("COUNT(*)")
        else:
            sql = f"SELECT COUNT(*) FROM ({chosen.in_order('c.id')}) AS chosen"
        return int(self._access.rows(sql, chosen.values)[0][0])

    def history(
        self,
        check: str = "kpi",
        *,
        fingerprint: str | None = None,
        max_age: timedelta = _STALE,
        now: datetime | None = None,
        strict: bool = False,
        **conditions: Unpack[Conditions],
    ) -> StoredHistory:
        """The labelled scores of one check as columns, for `fit_conformal_gate` and audits.

        Parameters
        ----------
        check : str
            Name of a score: "kpi" and "signals.*" of imported retrievals, or a check of tool calls.
        fingerprint : str, optional
            Only scores that this scorer made.
        max_age : timedelta
            Warns when the newest labelled score is older.
        now : datetime, optional
            The time to compare with; by default the clock's.
        strict : bool
            Whether scores of several scorers are refused instead of warned of.
        **conditions
            As for `query`.

        Warns
        -----
        MixedScorersWarning
            When several scorers made the scores; `provenance` is then None.
        StaleCalibrationWarning
        """
        if not isinstance(check, str):
            raise TypeError(f"`check` must be a string; got {check!r}. Pass 'kpi', for example.")
        check_text("fingerprint", fingerprint)
        chosen = filter_of(**conditions)
        with self._access.reading() as transaction:
            return history_of(
                transaction.stream(chosen.in_order(HISTORY_COLUMNS), chosen.values),
                check,
                fingerprint=fingerprint,
                max_age=max_age,
                now=check_moment("now", now),
                strict=check_flag("strict", strict),
            )

    def summary(
        self,
        *,
        enough: int = 1000,
        max_age: timedelta = _STALE,
        now: datetime | None = None,
        **conditions: Unpack[Conditions],
    ) -> StoreSummary:
        """What the store holds, with notes on what is amiss; conditions as for `query`, without a limit.

        Parameters
        ----------
        enough : int
            Below so many good calls a note says so.
        max_age : timedelta
            Above that age of the newest call a note says so.
        """
        chosen = filter_of(**conditions)
        with self._access.reading() as transaction:
            return summarize(
                transaction,
                chosen,
                version=self._access.version,
                enough=check_integer("enough", enough, 0),
                max_age=max_age,
                now=check_moment("now", now),
            )

    def import_jsonl(
        self,
        path: str | os.PathLike[str],
        *,
        label_key: str = "label",
        time_key: str | None = None,
        id_key: str | None = None,
        labeling_source: str | None = None,
        on_error: OnError = "raise",
    ) -> ImportReport:
        """Add a log of retrievals (one `to_dict()` a line) or an export of a store: all of it or nothing.

        Parameters
        ----------
        path : str or path-like
        label_key : str
            Key of the outcome in a line of a retrieval: true or false, 1 or 0; null or none for no label.
        time_key : str, optional
            Key of the time of a retrieval, in ISO 8601 with its zone. Without one the time is not known.
        id_key : str, optional
            Key of a name of the retrieval. Those that are in the store already are not added again; without
            a name every import adds all lines. Exported calls always have one.
        labeling_source : str, optional
            Who or what decided on the labels of retrievals.
        on_error : {"raise", "skip"}
            What to do about lines that cannot be read.

        Returns
        -------
        ImportReport

        Raises
        ------
        ValueError
            Names the first line that cannot be read.
        """
        check_choice("on_error", on_error, ("raise", "skip"))
        for name, value in (("time_key", time_key), ("id_key", id_key), ("labeling_source", labeling_source)):
            check_text(name, value)
        keys = Keys(label_key, time_key, id_key, labeling_source)
        return self._access.write(Import(path, keys, on_error).run, alone=True)

    def export(self, path: str | os.PathLike[str], **conditions: Unpack[Conditions]) -> int:
        """Write calls to a .jsonl or .parquet file (extra ``parquet``), all of it or nothing; how many.

        Conditions as for `query`. Of every call the latest label is written.
        """
        chosen, write = filter_of(**conditions), writer_for(path)
        with self._access.reading() as transaction:
            return export(path, write, transaction, chosen)

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        before: datetime | None = None,
        keep_last: int | None = None,
        now: datetime | None = None,
    ) -> int:
        """Delete calls with all their labels, by age or all but the last ones; how many calls.

        Calls whose time is not known are never too old. The file keeps its size and uses the room again.
        """
        chosen, values = check_limits(older_than, before, keep_last, now)
        return self._access.write(lambda work: forget(work.transaction, chosen, values), alone=True)

    def verify(self) -> tuple[str, ...]:
        """What is damaged, as sentences; nothing if all is well. Reads everything."""
        self._access.check()
        try:
            found = self._access.findings()
            for _ in self.iterate():
                pass
        except StoreError as error:
            return (str(error),)
        return found

    @property
    def schema_version(self) -> int:
        """Version of the tables."""
        return self._access.version

    def migrate(self) -> tuple[int, int]:
        """Bring an older store up to this release, in one transaction; the version before and after."""
        before = self._access.version
        self._access.migrate()
        return before, self._access.version

    def close(self) -> None:
        """Close every connection. Later calls raise StoreError."""
        self._access.close()

    def __enter__(self) -> CalibrationStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CalibrationStore({self._access.name!r})"

    def __reduce__(self) -> tuple[Callable[..., CalibrationStore], tuple[str, dict[str, Any]]]:
        return _reopened, (self._access.address, {**self._options, "create": False})


def _reopened(address: str, options: dict[str, Any]) -> CalibrationStore:
    return CalibrationStore(address, **options)
