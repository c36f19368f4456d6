"""A second implementation of the mechanisms, in exact fractions of a millisecond and with no regard for speed or size.

It is written from the RFCs, the drafts and the papers, to be read beside them. It shares only the reading
of the sources with the crate: where a source leaves a choice, the file of the mechanism in crates/control states it. A parameter is
an attribute of its class, with the name it has in `NAME:parameter=value`.

    units         milliseconds, microseconds, ticks
    estimator     SRTT and RTTVAR
    mechanism     the base of all mechanisms; a timer that doubles
    trace         one mechanism driven through events
    scripts       the events
    catalogue     every mechanism and preset with its scripts, collected from the other files
    worked        tables of worked numbers

The other files have a mechanism or a family each. A file lists its mechanisms in MECHANISMS at its end.
"""
