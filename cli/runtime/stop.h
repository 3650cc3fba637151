/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reasons to stop, all at one descriptor. */
#ifndef KTRXER_CLI_STOP_H
#define KTRXER_CLI_STOP_H

/*
 * SIGINT, SIGTERM and SIGHUP from now on ask to stop, unless they were ignored (nohup). The descriptor, or a negative
 * errno.
 */
int stop_open(void);
/* End of standard input asks to stop, too (--stop-on-eof). 0 or a negative errno. */
int stop_watch_input(void);
/* Any thread may call this. The first reason stays. */
void stop_request(int reason);

#endif
