"""A second implementation of the mechanisms, in exact fractions of a millisecond and with no regard for speed or size.

It is written from the RFCs, the drafts and the papers, to be read beside them. It shares only the reading
of the sources with the crate: where a source leaves a choice, the file of the mechanism in crates/control/src states it. A parameter is
an attribute of its class, with the name it has in `NAME:parameter=value`.

    units         milliseconds, microseconds, ticks
    estimator     SRTT and RTTVAR
    mechanism     the base of all mechanisms; a timer that doubles
    timers        default, linux-rto, basic-rto
    fullbackoff   fullbackoff1, fullbackoff2, gst-coap
    peak_hopper   peak-hopper
    eifel         coap-eifel
    cocoa         cocoa and its family
    gradient      cocoa-plus-plus
    fasor         fasor, fasor-token, fasor-option
    rtt_coap      rtt-coap
    trace         one mechanism driven through events
    scripts       the events
    catalogue     every mechanism and preset with its scripts
    worked        tables of worked numbers
"""
