# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer view`: the explorer of a directory of runs, a page that a server on this host's loopback address fills.

command     options, the address that is printed, signals
server      HTTP: the token, the checks of Host and Origin, the routes
answers     the answer to each request, from the library
library     the runs of the directory: the table, opened runs, what has changed
site        the directory as one page that needs no server (--export)
"""
