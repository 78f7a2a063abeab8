/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_books.h"

#include <cuweir/policy.h>
#include <sys/mman.h>

#include "graph_private.h"
#include "handles.h"
#include "pipeline.h"
#include "totals.h"

/* Cells of one size for all of them; taken from the system in pieces and kept. */
union cell {
	union cell *next;
	struct cw_graph_node node;
	struct cw_graph graph;
	struct cw_graph_capture capture;
};

enum { PIECE = 64 << 10, FREES_ON_LAUNCH = 1 };

struct cw_lock cw_graph_lock;
static union cell *cells;
static struct cw_graph *graphs;
static uint64_t last_order;

static uint64_t key_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* NULL where there is no memory; zeroed. */
void *cw_graph_take_cell(void)
{
	union cell *cell = cells;

	if (cell == NULL) {
		union cell *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (piece == MAP_FAILED) {
			return NULL;
		}
		for (size_t i = 0; i < PIECE / sizeof(*piece); i++) {
			piece[i].next = cells;
			cells = &piece[i];
		}
		cell = cells;
	}
	cells = cell->next;
	__builtin_memset(cell, 0, sizeof(*cell));
	return cell;
}

void cw_graph_give_cell(void *memory)
{
	union cell *cell = memory;

	cell->next = cells;
	cells = cell;
}

/* ---- graphs: the lock is held in all of these ----------------------------------------- */

static struct cw_graph *find_graph(CUgraph handle)
{
	struct cw_handle entry;

	return handle != NULL && cw_handles_get(CW_HANDLE_GRAPH, key_of(handle), &entry)
		       ? (struct cw_graph *)(uintptr_t)entry.value
		       : NULL;
}

static void drop_node(struct cw_graph_node *node)
{
	if (!node->only_frees) {
		(void)cw_total_sub(node->step.device, CUWEIR_KIND_GRAPH_PLANNED,
				   node->step.bytes);
	}
	cw_graph_give_cell(node);
}

void cw_graph_unuse(struct cw_graph *graph)
{
	struct cw_graph **at = &graphs;

	graph->uses--;
	if (graph->uses != 0) {
		return;
	}
	while (graph->nodes != NULL) {
		struct cw_graph_node *node = graph->nodes;

		graph->nodes = node->next;
		drop_node(node);
	}
	while (*at != graph) {
		at = &(*at)->next;
	}
	*at = graph->next;
	cw_graph_give_cell(graph);
}

/* The handle stands for it no longer. */
static void close_graph(struct cw_graph *graph)
{
	cw_handles_remove(CW_HANDLE_GRAPH, key_of(graph->handle), NULL);
	graph->handle = NULL;
	cw_graph_unuse(graph);
}

void cw_graph_set_handle(struct cw_graph *graph, CUgraph handle)
{
	struct cw_graph *stale = find_graph(handle);

	if (stale != NULL) {
		close_graph(stale); /* its end was not heard, and its handle is in use again */
	}
	graph->handle = handle;
	(void)cw_handles_set(CW_HANDLE_GRAPH, key_of(handle), key_of(graph), 0);
}

struct cw_graph *cw_graph_new(CUgraph handle)
{
	struct cw_graph *graph = cw_graph_take_cell();

	if (graph == NULL) {
		return NULL;
	}
	graph->uses = 1;
	graph->next = graphs;
	graphs = graph;
	if (handle != NULL) {
		cw_graph_set_handle(graph, handle);
	}
	return graph;
}

struct cw_graph *cw_graph_find_or_make(CUgraph handle)
{
	struct cw_graph *graph = find_graph(handle);

	return graph != NULL ? graph : cw_graph_new(handle);
}

static void insert(struct cw_graph *graph, struct cw_graph_node *node)
{
	struct cw_graph_node **at = &graph->nodes;

	while (*at != NULL && (*at)->step.order < node->step.order) {
		at = &(*at)->next;
	}
	node->next = *at;
	*at = node;
}

bool cw_graph_add_alloc(struct cw_graph *graph, CUgraphNode handle,
			const struct cw_graph_step *step)
{
	struct cw_graph_node *node = graph != NULL ? cw_graph_take_cell() : NULL;

	if (node == NULL) {
		return false;
	}
	node->handle = handle;
	node->step = *step;
	node->step.order = ++last_order;
	insert(graph, node);
	(void)cw_total_add(step->device, CUWEIR_KIND_GRAPH_PLANNED, step->bytes);
	return true;
}

/* True where the memory is this graph's own, which then never becomes the program's. */
static bool mark_freed(struct cw_graph *graph, uint64_t pointer, uint64_t order)
{
	for (struct cw_graph_node *node = graph->nodes; node != NULL; node = node->next) {
		if (node->step.pointer == pointer && !node->only_frees && node->freed == 0) {
			node->freed = order;
			return true;
		}
	}
	return false;
}

bool cw_graph_add_free(struct cw_graph *graph, CUgraphNode handle, uint64_t pointer)
{
	struct cw_graph_node *node;

	if (graph == NULL || mark_freed(graph, pointer, last_order + 1)) {
		last_order++;
		return graph != NULL;
	}
	node = cw_graph_take_cell();
	if (node == NULL) {
		return false;
	}
	node->handle = handle;
	node->only_frees = true;
	node->step.pointer = pointer;
	node->step.order = ++last_order;
	insert(graph, node);
	return true;
}

void cw_graph_planned(CUgraph graph, CUgraphNode node, const struct cw_graph_step *step)
{
	bool done;

	cw_lock_acquire(&cw_graph_lock);
	done = cw_graph_add_alloc(cw_graph_find_or_make(graph), node, step);
	cw_lock_release(&cw_graph_lock);
	if (!done) {
		cw_count_untracked_allocation();
	}
}

void cw_graph_freed(CUgraph graph, CUgraphNode node, uint64_t pointer)
{
	cw_lock_acquire(&cw_graph_lock);
	(void)cw_graph_add_free(cw_graph_find_or_make(graph), node, pointer);
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_moved(CUgraph parent, CUgraph child)
{
	struct cw_graph *from;
	struct cw_graph *to;

	cw_lock_acquire(&cw_graph_lock);
	from = find_graph(child);
	to = from != NULL ? cw_graph_find_or_make(parent) : NULL;
	if (to != NULL) {
		while (from->nodes != NULL) {
			struct cw_graph_node *node = from->nodes;

			from->nodes = node->next;
			if (node->only_frees &&
			    mark_freed(to, node->step.pointer, node->step.order)) {
				drop_node(node);
			} else {
				insert(to, node);
			}
		}
		close_graph(from);
	}
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_end_begin(struct cw_graph_end *end, CUgraph graph)
{
	struct cw_handle entry;

	end->graph = NULL;
	if (graph != NULL && cw_handles_remove(CW_HANDLE_GRAPH, key_of(graph), &entry)) {
		end->graph = (struct cw_graph *)(uintptr_t)entry.value;
	}
}

void cw_graph_end_finish(struct cw_graph_end *end, CUgraph graph, bool ended)
{
	if (end->graph == NULL) {
		return;
	}
	cw_lock_acquire(&cw_graph_lock);
	if (ended) {
		cw_graph_unuse(end->graph);
	} else {
		cw_graph_set_handle(end->graph, graph);
	}
	cw_lock_release(&cw_graph_lock);
}

/* ---- executable graphs --------------------------------------------------------------------- */

/*
 * An executable graph has the nodes that its graph had at that time: value is the graph, value2
 * the order of the last node, shifted, and the flag.
 */
static void close_exec(CUgraphExec exec)
{
	struct cw_handle entry;

	if (cw_handles_remove(CW_HANDLE_GRAPH_EXEC, key_of(exec), &entry)) {
		cw_graph_unuse((struct cw_graph *)(uintptr_t)entry.value);
	}
}

void cw_graph_instantiated(CUgraphExec exec, CUgraph graph, bool frees_on_launch)
{
	struct cw_graph *found;

	cw_lock_acquire(&cw_graph_lock);
	close_exec(exec); /* its end was not heard, and its handle is in use again */
	found = find_graph(graph);
	if (found != NULL &&
	    cw_handles_set(CW_HANDLE_GRAPH_EXEC, key_of(exec), key_of(found),
			   last_order << 1 | (frees_on_launch ? FREES_ON_LAUNCH : 0)) >= 0) {
		found->uses++;
	}
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_exec_updated(CUgraphExec exec, CUgraph graph)
{
	struct cw_handle entry;
	struct cw_graph *found;

	cw_lock_acquire(&cw_graph_lock);
	found = find_graph(graph);
	if (found != NULL && cw_handles_get(CW_HANDLE_GRAPH_EXEC, key_of(exec), &entry)) {
		found->uses++;
		(void)cw_handles_set(CW_HANDLE_GRAPH_EXEC, key_of(exec), key_of(found),
				     last_order << 1 | (entry.value2 & FREES_ON_LAUNCH));
		cw_graph_unuse((struct cw_graph *)(uintptr_t)entry.value);
	}
	cw_lock_release(&cw_graph_lock);
}

void cw_graph_exec_end_begin(struct cw_graph_end *end, CUgraphExec exec)
{
	struct cw_handle entry;

	end->graph = NULL;
	if (exec != NULL && cw_handles_remove(CW_HANDLE_GRAPH_EXEC, key_of(exec), &entry)) {
		end->graph = (struct cw_graph *)(uintptr_t)entry.value;
		end->facts = entry.value2;
	}
}

void cw_graph_exec_end_finish(struct cw_graph_end *end, CUgraphExec exec, bool ended)
{
	if (end->graph == NULL) {
		return;
	}
	cw_lock_acquire(&cw_graph_lock);
	if (ended || cw_handles_set(CW_HANDLE_GRAPH_EXEC, key_of(exec), key_of(end->graph),
				    end->facts) < 0) {
		cw_graph_unuse(end->graph);
	}
	cw_lock_release(&cw_graph_lock);
}

bool cw_graph_exec_known(CUgraphExec exec)
{
	return exec != NULL && cw_handles_get(CW_HANDLE_GRAPH_EXEC, key_of(exec), NULL);
}

bool cw_graph_frees_on_launch(CUgraphExec exec)
{
	struct cw_handle entry;

	return cw_handles_get(CW_HANDLE_GRAPH_EXEC, key_of(exec), &entry) &&
	       (entry.value2 & FREES_ON_LAUNCH) != 0;
}

size_t cw_graph_steps(CUgraphExec exec, bool frees, uint64_t *cursor,
		      struct cw_graph_step *ret_steps, size_t max)
{
	const struct cw_graph_node *node = NULL;
	struct cw_handle entry;
	uint64_t last = 0;
	size_t count = 0;

	cw_lock_acquire(&cw_graph_lock);
	if (cw_handles_get(CW_HANDLE_GRAPH_EXEC, key_of(exec), &entry)) {
		node = ((const struct cw_graph *)(uintptr_t)entry.value)->nodes;
		last = entry.value2 >> 1;
	}
	for (; node != NULL && node->step.order <= last && count < max; node = node->next) {
		bool own = node->freed != 0 && node->freed <= last;

		if (node->step.order > *cursor && node->only_frees == frees && !own) {
			ret_steps[count++] = node->step;
		}
	}
	if (count > 0) {
		*cursor = ret_steps[count - 1].order;
	}
	cw_lock_release(&cw_graph_lock);
	return count;
}

void cw_graph_books_postfork_child(void)
{
	cw_lock_reset(&cw_graph_lock);
	cells = NULL;
	graphs = NULL;
	cw_graph_captures_postfork_child();
}
