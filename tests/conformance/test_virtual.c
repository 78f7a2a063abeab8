/* SPDX-License-Identifier: Apache-2.0 */
/* Rows D-06, D-07, D-10; P-24, P-54; C-07, C-90 to C-96, C-111: virtual memory. */
#include "harness.h"

static const char nothing_left[] = "0 frees of unknown addresses";
static const char none_live[] = "0 allocations still live";

/* 2 MiB pieces: M is 2097152. */
static void references_and_mappings(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-54: reservations are no memory; bytes live until the last mapping",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "alloc=20M,dealloc=20M+14M+1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "reserve r 160G; truth; repeat 10 create h# 2M; truth; "
			    "repeat 10 map h# r 2M*# 2M; repeat 10 drop h#; truth; "
			    "unmap r 0 6M; truth; unmap r 6M 14M; truth; unreserve r 160G; truth",
		  .events = { "alloc_threshold total=20971520 kind=1 device=0 requested=2097152 "
			      "call=cuMemCreate\n"
			      "dealloc_threshold total=18874368 call=cuMemUnmap\n"
			      "dealloc_threshold total=12582912 call=cuMemUnmap\n"
			      "dealloc_threshold total=0 call=cuMemUnmap\n" },
		  .out = "truth 0 4 171798691840 1\n"
			 "truth 0 0 20971520 10\ntruth 0 4 171798691840 1\n"
			 "truth 0 0 20971520 10\ntruth 0 4 171798691840 1\n"
			 "truth 0 0 14680064 7\ntruth 0 4 171798691840 1\n"
			 "truth 0 4 171798691840 1\n",
		  .err = { nothing_left, none_live,
			   "virtual memory: 0 B (0 B) in use, peak 171798691840 B (160.0 GiB), "
			   "1 allocations, 1 frees",
			   "device memory: 0 B (0 B) in use, peak 20971520 B (20.0 MiB), "
			   "10 allocations, 10 frees" } },
		{ .row = "C-90: released first, unmapped later; the free is the unmapping's",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "reserve r 2M; create h 2M; map h r 0 2M; drop h; truth; "
			    "unmap r 0 2M; truth; unreserve r 2M",
		  .events = { "allocated size=2097152 call=cuMemCreate kind=1 device=0\n"
			      "deallocated size=2097152 call=cuMemUnmap kind=1 device=0\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 4 2097152 1\ntruth 0 4 2097152 1\n",
		  .err = { nothing_left, none_live } },
		{ .row = "C-91: unmapped first, released later; the free is the release's",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "reserve r 2M; create h 2M; map h r 0 2M; unmap r 0 2M; truth; "
			    "map h r 0 2M; unmap r 0 2M; drop h; unreserve r 2M; truth",
		  .events = { "allocated size=2097152\n"
			      "deallocated size=2097152 call=cuMemRelease\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 4 2097152 1\n" },
		{ .row = "C-92: two mappings of one handle count once, and both hold it",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "reserve r 4M; create h 2M; map h r 0 2M; map h r 2M 2M; truth; drop h; "
			    "unmap r 2M 2M; truth; unmap r 0 2M; unreserve r 4M; truth",
		  .events = { "allocated size=2097152\ndeallocated size=2097152\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 4 4194304 1\n"
			 "truth 0 0 2097152 1\ntruth 0 4 4194304 1\n" },
		{ .row = "C-91: both mappings at once",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "reserve r 4M; create h 2M; map h r 0 2M; map h r 2M 2M; drop h; "
			    "unmap r 0 4M; unreserve r 4M; truth",
		  .events = { "allocated size=2097152\ndeallocated size=2097152\n" },
		  .out = "" },
		{ .row = "C-94: a retained handle is one more reference, from any address",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "reserve r 4M; create h 4M; map h r 0 4M; retain a r 0; retain b r 3M; "
			    "drop h; drop a; unmap r 0 4M; truth; drop b; unreserve r 4M; truth",
		  .events = { "allocated size=4194304\n"
			      "deallocated size=4194304 call=cuMemRelease\n" },
		  .out = "truth 0 0 4194304 1\ntruth 0 4 4194304 1\n",
		  .err = { nothing_left, none_live } },
		{ .row = "C-94: retained after its last reference went",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "reserve r 4M; create g 2M; map g r 0 2M; create h 2M; map h r 2M 2M; "
			    "drop h; retain a r 3M; unmap r 0 4M; truth; drop a; drop g; "
			    "unreserve r 4M; truth",
		  .events = { "allocated size=2097152\nallocated size=2097152\n"
			      "deallocated size=2097152\ndeallocated size=2097152\n" },
		  .out = "truth 0 0 4194304 2\ntruth 0 4 4194304 1\n",
		  .err = { nothing_left, none_live } },
	};

	(void)state;
	RUN_ALL(runs);
}

static void whose_memory(void **state)
{
	static const struct run runs[] = {
		{ .row = "P-24: memory of the host is no device's",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "create a 2M numa 0; create b 4M host 7; drop a; drop b; truth",
		  .events = { "allocated size=2097152 kind=3 device=-1\n"
			      "allocated size=4194304 kind=3 device=-1\n"
			      "deallocated size=2097152 kind=3 device=-1\n"
			      "deallocated size=4194304 kind=3 device=-1\n" },
		  .out = "" },
		{ .row = "P-24: the device is the one named, whichever is current",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "alloc=2M,dealloc=2M" },
		  .environment = { "CUWEIR_SIM_DEVICES=3" },
		  .script = "create a 2M device 2; truth; drop a; device 1; create b 2M device 0; "
			    "drop b; truth",
		  .events = { "alloc_threshold total=2097152 device=2\ndealloc_threshold total=0 "
			      "device=2\nalloc_threshold total=2097152 device=0\n"
			      "dealloc_threshold total=0 device=0\n" },
		  .out = "truth 2 0 2097152 1\n" },
		{ .row = "C-07, P-24: what the driver refuses leaves nothing",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "expect 1 create a 1000; expect 1 create a 0; "
			    "expect 101 create a 2M device 850725928; expect 1 create a 2M none 9; "
			    "truth",
		  .events = { "" }, .out = "" },
		{ .row = "C-97: a context's end takes no virtual memory",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .script = "ctx create; reserve r 2M; create h 2M; map h r 0 2M; ctx destroy; "
			    "truth; unmap r 0 2M; drop h; unreserve r 2M; truth",
		  .events = { "allocated size=2097152\n"
			      "deallocated size=2097152 call=cuMemRelease\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 4 2097152 1\n" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void refusals_and_failures(void **state)
{
	static const struct run runs[] = {
		{ .row = "D-06: a veto releases it again",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "alloc=4M,veto=2@1" },
		  .script = "create a 2M; expect 2 create b 2M; truth; create b 2M; drop a; drop b; "
			    "truth",
		  .events = { "alloc_threshold total=4194304\nalloc_threshold total=4194304\n" },
		  .out = "truth 0 0 2097152 1\n" },
		{ .row = "D-02: out of memory is offered, and mended by a release",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "retry=1" }, .environment = { "CUWEIR_SIM_FAIL=cuMemCreate:1=2" },
		  .script = "create a 2M; drop a; truth",
		  .events = { "alloc_failure size=2097152 count=0\n" }, .out = "" },
		{ .row = "D-07: a release that fails leaves the reference and the record",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemRelease:1=1", "CUWEIR_REPORT=1" },
		  .script = "create a 2M; expect 1 drop a; truth; drop a; truth",
		  .shown = "allocated before_free deallocated",
		  .events = { "allocated size=2097152\nbefore_free charged=2097152\n"
			      "before_free charged=2097152\ndeallocated size=2097152\n" },
		  .out = "truth 0 0 2097152 1\n", .err = { nothing_left, none_live } },
		{ .row = "D-07: an unmapping that fails leaves all of them",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1,dealloc=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemUnmap:1=1", "CUWEIR_REPORT=1" },
		  .script = "reserve r 6M; repeat 3 create h# 2M; map h0 r 0 2M; map h1 r 2M 2M; "
			    "map h2 r 4M 2M; drop h0; drop h2; expect 1 unmap r 0 6M; truth; "
			    "drop h1; unmap r 0 6M; truth; unreserve r 6M",
		  .shown = "before_free deallocated dealloc_threshold",
		  .events = { "before_free charged=2097152\nbefore_free charged=2097152\n"
			      "before_free charged=2097152\nbefore_free charged=2097152\n"
			      "before_free charged=2097152\ndeallocated after=4194304\n"
			      "deallocated after=2097152\n"
			      "dealloc_threshold total=0\ndeallocated after=0\n" },
		  .out = "truth 0 0 6291456 3\ntruth 0 4 6291456 1\ntruth 0 4 6291456 1\n",
		  .err = { nothing_left, none_live } },
		{ .row = "more in one unmapping than lies at hand",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemUnmap:1=1", "CUWEIR_REPORT=1" },
		  .script = "reserve r 60M; repeat 30 create h# 2M; repeat 30 map h# r 2M*# 2M; "
			    "repeat 30 drop h#; expect 1 unmap r 0 60M; truth; unmap r 0 60M; "
			    "unreserve r 60M; truth",
		  .shown = "none", .events = { "" },
		  .out = "truth 0 0 62914560 30\ntruth 0 4 62914560 1\n",
		  .err = { nothing_left, none_live, "30 allocations, 30 frees" } },
		{ .row = "C-93: a reservation is freed whole",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1,admit=801@1,kinds=virtual,alloc=1" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "reserve r 4M; expect 1 unreserve r 2M; truth; unreserve r 4M; truth",
		  .shown = "admit alloc_threshold allocated deallocated", .events = { "" },
		  .out = "truth 0 4 4194304 1\n",
		  .err = { nothing_left, none_live, "virtual memory: 0 B (0 B) in use, peak 4194304 B" } },
		{ .row = "D-08: a status of on_dealloc_threshold comes back, the memory is gone",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "dealloc=2M,dealloc_status=999,debug=1" },
		  .script = "reserve r 2M; create h 2M; map h r 0 2M; drop h; "
			    "expect 999 unmap r 0 2M; unreserve r 2M; truth",
		  .events = { "allocated size=2097152\ndealloc_threshold total=0\n"
			      "deallocated size=2097152\n" },
		  .out = "" },
	};

	(void)state;
	RUN_ALL(runs);
}

static void shared_and_other(void **state)
{
	static const struct run runs[] = {
		{ .row = "coverage 1c: imported by the process that exported, it counts once",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "create a 2M device 0 fd; export a; import b; truth; reserve r 2M; "
			    "map b r 0 2M; drop a; drop b; truth; unmap r 0 2M; unreserve r 2M; "
			    "truth",
		  .events = { "allocated size=2097152 kind=1\ndeallocated size=2097152 kind=1\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 0 2097152 1\ntruth 0 4 2097152 1\n",
		  .err = { nothing_left, none_live } },
		{ .row = "D-10: another process's memory is imported, and counts while it is mapped",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "alloc=2M,dealloc=2M,kinds=imported,debug=1,veto=2" },
		  .environment = { "CUWEIR_REPORT=1" },
		  .script = "foreign 2M; import a; import b; reserve r 4M; map a r 0 2M; map b r 2M 2M; "
			    "truth; drop a; unmap r 0 2M; drop b; truth; unmap r 2M 2M; truth; "
			    "import a; drop a; unreserve r 4M",
		  .events = { "alloc_threshold total=2097152 kind=5 device=0 call=cuMemMap\n"
			      "allocated size=2097152 kind=5\n"
			      "dealloc_threshold total=0 kind=5 call=cuMemUnmap\n"
			      "deallocated size=2097152 kind=5\n" },
		  .out = "truth 0 3 2097152 1\ntruth 0 4 4194304 1\n"
			 "truth 0 3 2097152 1\ntruth 0 4 4194304 1\ntruth 0 4 4194304 1\n",
		  .err = { nothing_left, none_live, "cannot be undone" } },
		{ .row = "a multicast object is no memory, and its release is no unknown one",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "multicast m 2M; reserve r 2M; map m r 0 2M; unmap r 0 2M; drop m; "
			    "unreserve r 2M; truth",
		  .events = { "" }, .out = "", .err = { nothing_left, none_live } },
		{ .row = "C-111: what is mapped into an array is held by it",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "create h 2M; array a; tile a h; drop h; truth; untile a; truth; "
			    "arrayfree a; create h 2M; array a; tile a h ptsz; drop h; truth; "
			    "arrayfree a; truth",
		  .events = { "allocated size=2097152\n"
			      "deallocated size=2097152 call=cuMemMapArrayAsync\n"
			      "allocated size=2097152\n"
			      "deallocated size=2097152 call=cuArrayDestroy\n" },
		  .out = "truth 0 0 2097152 1\ntruth 0 0 2097152 1\n",
		  .err = { none_live } },
		{ .row = "C-111: a mapping into an array that fails changes nothing",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "debug=1" },
		  .environment = { "CUWEIR_SIM_FAIL=cuMemMapArrayAsync:1=1,cuMemMapArrayAsync:3=1" },
		  .script = "create h 2M; array a; expect 1 tile a h; tile a h; drop h; "
			    "expect 1 untile a; truth; untile a; truth; arrayfree a",
		  .events = { "allocated size=2097152\ndeallocated size=2097152\n" },
		  .out = "truth 0 0 2097152 1\n" },
		{ .row = "P-36: all of it in eight threads at once",
		  .ways = DRIVER_WAYS, .program = "virtual",
		  .policies = { "dealloc=1" }, .environment = { "CUWEIR_REPORT=1" },
		  .script = "storm 8 200; truth",
		  .shown = "none", .events = { "" }, .out = "",
		  .err = { nothing_left, none_live, "6400 allocations, 6400 frees" } },
	};

	(void)state;
	RUN_ALL(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references_and_mappings),
		cmocka_unit_test(whose_memory),
		cmocka_unit_test(refusals_and_failures),
		cmocka_unit_test(shared_and_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
