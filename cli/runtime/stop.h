/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reasons to stop, all at one descriptor. */
#ifndef KTRXER_CLI_STOP_H
#define KTRXER_CLI_STOP_H

#include <stdbool.h>

/*
 * SIGINT, SIGTERM and SIGHUP from now on ask to stop, unless they were ignored (nohup). The descriptor, or a negative
 * errno.
 */
int stop_open(void);
/*
 * The measurement or the service begins: SIGINT asks for a result, at once or (for people) once 100 ms have passed.
 * Until then it ends the process, and prints nothing.
 */
void stop_gives_result(bool now);
/* End of standard input asks to stop, too (--stop-on-eof). 0 or a negative errno. */
int stop_watch_input(void);
/* Any thread may call this. The first reason stays. */
void stop_request(int reason);

#endif
