/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libbpf prints on stderr by default; a library does not print. Its print function is one for the whole process, so two
 * threads that save and restore it by themselves can leave the process without its own. Calls nest, and threads may
 * overlap: the first begin() saves the process's function, the last end() restores it.
 */
#ifndef KTRXER_LIB_BPF_QUIET_H
#define KTRXER_LIB_BPF_QUIET_H

void ktrxer_bpf_quiet_begin(void);
void ktrxer_bpf_quiet_end(void);

#endif
