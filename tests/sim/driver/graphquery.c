/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about a graph, and its edges. Every list can be asked for its length first. */
#include <string.h>

#include "internal.h"
#include "graph.h"

static struct sim_node *node_of(CUgraphNode h)
{
	return sim_obj_get(h, SIM_NODE);
}

static CUresult get_nodes(CUgraph h, CUgraphNode *nodes, size_t *n, bool roots)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);
	size_t i = 0;

	if (g == NULL || n == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (struct sim_node *k = g->first; k != NULL; k = k->next) {
		if (roots && k->n_deps > 0) {
			continue;
		}
		if (nodes != NULL && i == *n) {
			break;
		}
		if (nodes != NULL) {
			nodes[i] = (CUgraphNode)k;
		}
		i++;
	}
	*n = i;
	return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode h, CUgraphNodeType *type)
{
	struct sim_node *n = node_of(h);

	if (n == NULL || type == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*type = n->type;
	return CUDA_SUCCESS;
}

static void put_edge(size_t at, size_t room, CUgraphNode *from, CUgraphNode f, CUgraphNode *to,
		     CUgraphNode t, CUgraphEdgeData *data)
{
	if (at >= room) {
		return;
	}
	if (from != NULL) {
		from[at] = f;
	}
	if (to != NULL) {
		to[at] = t;
	}
	if (data != NULL) {
		memset(&data[at], 0, sizeof(*data));
	}
}

/* The edges of a graph; only those into, or out of, one node where it is given. */
static CUresult edges(struct sim_graph *g, const struct sim_node *into,
		      const struct sim_node *out_of, CUgraphNode *from, CUgraphNode *to,
		      CUgraphEdgeData *data, size_t *n)
{
	bool count_only = from == NULL && to == NULL;
	size_t found = 0;

	if (g == NULL || n == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (struct sim_node *k = g->first; k != NULL; k = k->next) {
		for (size_t i = 0; i < k->n_deps; i++) {
			if ((into != NULL && k != into) ||
			    (out_of != NULL && k->deps[i] != (CUgraphNode)(uintptr_t)out_of)) {
				continue;
			}
			put_edge(found, count_only ? 0 : *n, from, k->deps[i], to, (CUgraphNode)k,
				 data);
			found++;
		}
	}
	*n = count_only || found < *n ? found : *n;
	return CUDA_SUCCESS;
}

static CUresult graph_edges(CUgraph h, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
			    size_t *n)
{
	return edges(sim_obj_get(h, SIM_GRAPH), NULL, NULL, from, to, data, n);
}

static CUresult dependencies(CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *data, size_t *n)
{
	struct sim_node *k = node_of(h);

	return k == NULL ? CUDA_ERROR_INVALID_VALUE
			 : edges(k->graph, k, NULL, out, NULL, data, n);
}

static CUresult dependents(CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *data, size_t *n)
{
	struct sim_node *k = node_of(h);

	return k == NULL ? CUDA_ERROR_INVALID_VALUE
			 : edges(k->graph, NULL, k, NULL, out, data, n);
}

static CUresult link_nodes(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	CUresult r = sim_obj_get(h, SIM_GRAPH) != NULL && (n == 0 || (from != NULL && to != NULL))
			     ? CUDA_SUCCESS
			     : CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		struct sim_node *k = node_of(to[i]);

		if (k == NULL || k->graph != (struct sim_graph *)h ||
		    !sim_node_depends(k, &from[i], 1)) {
			r = CUDA_ERROR_INVALID_VALUE;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* "Nodes and edges of the graph cannot be deleted" where it has memory nodes. */
static CUresult unlink_nodes(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	struct sim_graph *g = sim_obj_get(h, SIM_GRAPH);

	if (g == NULL || (n > 0 && (from == NULL || to == NULL))) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (g->has_memory) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < n; i++) {
		struct sim_node *k = node_of(to[i]);
		size_t kept = 0;

		for (size_t j = 0; k != NULL && j < k->n_deps; j++) {
			if (k->deps[j] != from[i]) {
				k->deps[kept++] = k->deps[j];
			}
		}
		if (k != NULL) {
			k->n_deps = kept;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult child_of(CUgraphNode h, CUgraph *ret)
{
	struct sim_node *n = node_of(h);

	if (n == NULL || ret == NULL || n->child == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret = (CUgraph)n->child;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), (graph), (*n),
	get_nodes(graph, nodes, n, false))
SIM_API(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), (graph), (*n),
	get_nodes(graph, nodes, n, true))
SIM_API(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), (node), (*type),
	node_type(node, type))
SIM_API(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n), (graph),
	(*n), graph_edges(graph, from, to, NULL, n))
SIM_API(cuGraphGetEdges_v2,
	(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
	(graph), (*n), graph_edges(graph, from, to, data, n))
SIM_API(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *deps, size_t *n), (node), (*n),
	dependencies(node, deps, NULL, n))
SIM_API(cuGraphNodeGetDependencies_v2,
	(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *data, size_t *n), (node), (*n),
	dependencies(node, deps, data, n))
SIM_API(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *deps, size_t *n), (node),
	(*n), dependents(node, deps, NULL, n))
SIM_API(cuGraphNodeGetDependentNodes_v2,
	(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *data, size_t *n), (node), (*n),
	dependents(node, deps, data, n))
SIM_API(cuGraphAddDependencies,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n), (graph, n), (0),
	link_nodes(graph, from, to, n))
SIM_API(cuGraphAddDependencies_v2,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	 const CUgraphEdgeData *data, size_t n),
	(graph, data != NULL, n), (0), link_nodes(graph, from, to, n))
SIM_API(cuGraphRemoveDependencies,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n), (graph, n), (0),
	unlink_nodes(graph, from, to, n))
SIM_API(cuGraphRemoveDependencies_v2,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	 const CUgraphEdgeData *data, size_t n),
	(graph, data != NULL, n), (0), unlink_nodes(graph, from, to, n))
SIM_API(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph), (node), (*graph),
	child_of(node, graph))
