/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_SEND_ROOM_H
#define KTRXER_LIB_SEND_ROOM_H

/* The largest send buffer that is allowed: a full buffer blocks or refuses before the device does. */
void ktx_sock_send_room(int fd, int bytes);

#endif
