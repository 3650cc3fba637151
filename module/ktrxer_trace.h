/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of a probe's states. `file` is the number of the open file in its fdinfo. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ktrxer

#if !defined(KTRXER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KTRXER_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(ktx_commit,
	TP_PROTO(u32 file, u32 number, u64 at_ns, u32 length, int error),
	TP_ARGS(file, number, at_ns, length, error),
	TP_STRUCT__entry(
		__field(u64, at_ns)
		__field(u32, file)
		__field(u32, number)
		__field(u32, length)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->at_ns = at_ns;
		__entry->file = file;
		__entry->number = number;
		__entry->length = length;
		__entry->error = error;
	),
	TP_printk("file=%u probe=%u at_ns=%llu length=%u error=%d", __entry->file,
		  __entry->number, __entry->at_ns, __entry->length, __entry->error)
);

TRACE_EVENT(ktx_wake,
	TP_PROTO(u32 file, u64 wanted_ns, u64 late_ns),
	TP_ARGS(file, wanted_ns, late_ns),
	TP_STRUCT__entry(
		__field(u64, wanted_ns)
		__field(u64, late_ns)
		__field(u32, file)
	),
	TP_fast_assign(
		__entry->wanted_ns = wanted_ns;
		__entry->late_ns = late_ns;
		__entry->file = file;
	),
	TP_printk("file=%u wanted_ns=%llu late_ns=%llu", __entry->file, __entry->wanted_ns,
		  __entry->late_ns)
);

TRACE_EVENT(ktx_transmit,
	TP_PROTO(u32 file, u32 number, u64 planned_ns, u64 call_ns, u32 queue, int result),
	TP_ARGS(file, number, planned_ns, call_ns, queue, result),
	TP_STRUCT__entry(
		__field(u64, planned_ns)
		__field(u64, call_ns)
		__field(u32, file)
		__field(u32, number)
		__field(u32, queue)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->planned_ns = planned_ns;
		__entry->call_ns = call_ns;
		__entry->file = file;
		__entry->number = number;
		__entry->queue = queue;
		__entry->result = result;
	),
	TP_printk("file=%u probe=%u planned_ns=%llu call_ns=%llu queue=%u result=%d",
		  __entry->file, __entry->number, __entry->planned_ns, __entry->call_ns,
		  __entry->queue, __entry->result)
);

TRACE_EVENT(ktx_report,
	TP_PROTO(u32 file, u32 number, int status, int error, u32 tries),
	TP_ARGS(file, number, status, error, tries),
	TP_STRUCT__entry(
		__field(u32, file)
		__field(u32, number)
		__field(int, status)
		__field(int, error)
		__field(u32, tries)
	),
	TP_fast_assign(
		__entry->file = file;
		__entry->number = number;
		__entry->status = status;
		__entry->error = error;
		__entry->tries = tries;
	),
	TP_printk("file=%u probe=%u status=%d error=%d tries=%u", __entry->file, __entry->number,
		  __entry->status, __entry->error, __entry->tries)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ktrxer_trace
#include <trace/define_trace.h>
