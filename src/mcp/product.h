/* The endpoint of the product, the same over each transport: its tools, names and texts. */
#ifndef SPOOLBOX_MCP_PRODUCT_H
#define SPOOLBOX_MCP_PRODUCT_H

#include "box/app.h"
#include "mcp/endpoint.h"

/* Fills endpoint; app is open and borrowed. endpoint_check and endpoint_finish are the caller's. */
void product_endpoint(struct app *app, struct endpoint *endpoint);

#endif
