/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes in the order of their making, which is an order that satisfies their dependencies
 * unless a program adds edges against it.
 */
#include "internal.h"
#include "graph.h"

struct sim_graph *sim_graph_new(void)
{
	return sim_obj_new(SIM_GRAPH);
}

struct sim_node *sim_node_new(struct sim_graph *g, CUgraphNodeType type)
{
	struct sim_node *n = sim_obj_new(SIM_NODE);

	if (n != NULL) {
		n->graph = g;
		n->type = type;
		n->prev = g->last;
		if (g->last != NULL) {
			g->last->next = n;
		} else {
			g->first = n;
		}
		g->last = n;
		g->n_nodes++;
	}
	return n;
}

/* False: a dependency is no node of the same graph, or there are too many. */
bool sim_node_depends(struct sim_node *n, const CUgraphNode *deps, size_t count)
{
	if (count > 0 && (deps == NULL || n->n_deps + count > SIM_MAX_DEPS)) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		const struct sim_node *d = sim_obj_get(deps[i], SIM_NODE);

		if (d == NULL || d->graph != n->graph || d == n) {
			return false;
		}
		n->deps[n->n_deps++] = deps[i];
	}
	return true;
}

void sim_node_unlink(struct sim_node *n)
{
	struct sim_graph *g = n->graph;

	if (n->next != NULL) {
		n->next->prev = n->prev;
	} else {
		g->last = n->prev;
	}
	if (n->prev != NULL) {
		n->prev->next = n->next;
	} else {
		g->first = n->next;
	}
	g->n_nodes--;
	for (struct sim_node *k = g->first; k != NULL; k = k->next) {
		size_t kept = 0;

		for (size_t i = 0; i < k->n_deps; i++) {
			if (k->deps[i] != (CUgraphNode)n) {
				k->deps[kept++] = k->deps[i];
			}
		}
		k->n_deps = kept;
	}
}

void sim_node_drop(struct sim_node *n)
{
	if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->arena != NULL) {
		sim_node_forget(n);
	}
	if (n->child != NULL) {
		sim_graph_drop(n->child);
	}
	sim_obj_free(&n->obj);
}

/* The handle dies; the nodes live on while an executable graph needs them. sim_lock is held. */
void sim_graph_drop(struct sim_graph *g)
{
	g->destroyed = true;
	atomic_store(&g->obj.type, 0);
	if (g->instances > 0) {
		return;
	}
	while (g->first != NULL) {
		struct sim_node *n = g->first;

		g->first = n->next;
		sim_node_drop(n);
	}
	sim_obj_free(&g->obj);
}

static struct sim_node *clone_node(struct sim_graph *to, struct sim_node *n)
{
	struct sim_node *c = sim_node_new(to, n->type);

	if (c == NULL) {
		return NULL;
	}
	c->dptr = n->dptr;
	c->size = n->size;
	c->value = n->value;
	c->width = n->width;
	c->box = n->box;
	c->fn = n->fn;
	c->data = n->data;
	c->original = n;
	n->clone = c;
	c->n_deps = n->n_deps;
	for (size_t i = 0; i < n->n_deps; i++) {
		const struct sim_node *d = (const struct sim_node *)n->deps[i];

		c->deps[i] = (CUgraphNode)d->clone;
	}
	if (n->child != NULL) {
		c->child = sim_graph_clone(n->child);
		if (c->child == NULL) {
			return NULL;
		}
		c->child->owner = c;
	}
	return c;
}

/* A copy with its child graphs, of a graph without memory nodes. sim_lock is held. */
struct sim_graph *sim_graph_clone(const struct sim_graph *g)
{
	struct sim_graph *c = sim_graph_new();

	for (struct sim_node *n = g->first; c != NULL && n != NULL; n = n->next) {
		n->clone = NULL;
	}
	for (struct sim_node *n = g->first; c != NULL && n != NULL; n = n->next) {
		if (clone_node(c, n) == NULL) {
			sim_graph_drop(c);
			return NULL;
		}
	}
	return c;
}

static CUresult create(CUgraph *ret, unsigned int flags)
{
	struct sim_graph *g;

	if (ret == NULL || flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	g = sim_graph_new();
	if (g == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUgraph)g;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph h)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);

	if (g == NULL || g->owner != NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&sim_lock);
	sim_graph_drop(g);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* GPU?: the code for a graph with memory nodes (C-87). */
static CUresult clone_graph(CUgraph *ret, CUgraph h)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	struct sim_graph *c;

	if (ret == NULL || g == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (g->has_memory) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&sim_lock);
	c = sim_graph_clone(g);
	pthread_mutex_unlock(&sim_lock);
	if (c == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUgraph)c;
	return CUDA_SUCCESS;
}

static CUresult find_in_clone(CUgraphNode *ret, CUgraphNode original, CUgraph h)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);

	for (struct sim_node *n = g != NULL && ret != NULL ? g->first : NULL; n != NULL;
	     n = n->next) {
		if (n->original == (struct sim_node *)original) {
			*ret = (CUgraphNode)n;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* GPU?: the code where the graph has memory nodes: "will return an error". */
static CUresult destroy_node(CUgraphNode h)
{
	struct sim_node *n = sim_obj_get(h, SIM_NODE);

	if (n == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (n->graph->has_memory) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&sim_lock);
	sim_node_unlink(n);
	sim_node_drop(n);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

SIM_API(cuGraphCreate, (CUgraph *graph, unsigned int flags), (flags), (*graph),
	create(graph, flags))
SIM_API(cuGraphDestroy, (CUgraph graph), (graph), (0), destroy(graph))
SIM_API(cuGraphClone, (CUgraph *ret, CUgraph graph), (graph), (*ret), clone_graph(ret, graph))
SIM_API(cuGraphNodeFindInClone, (CUgraphNode *ret, CUgraphNode node, CUgraph graph), (node, graph),
	(*ret), find_in_clone(ret, node, graph))
SIM_API(cuGraphDestroyNode, (CUgraphNode node), (node), (0), destroy_node(node))
