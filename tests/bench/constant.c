/*
 * A FastCGI program that answers every request with the same body: what is left when nothing is
 * done. contrib/bench compares with it. The body is the file named by CONSTANT_BODY.
 */
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_body(size_t *len)
{
	static char body[1 << 20];
	const char *path = getenv("CONSTANT_BODY");
	FILE *file = path != NULL ? fopen(path, "r") : NULL;
	*len = file != NULL ? fread(body, 1, sizeof(body), file) : 0;
	if (file != NULL)
		fclose(file);
	return body;
}

int main(void)
{
	size_t len;
	const char *body = read_body(&len);
	FCGX_Request request;
	FCGX_Init();
	FCGX_InitRequest(&request, 0, 0);
	while (FCGX_Accept_r(&request) == 0) {
		char input[8192];
		while (FCGX_GetStr(input, sizeof(input), request.in) > 0)
			continue;
		FCGX_FPrintF(request.out,
			     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			     (int)len);
		FCGX_PutStr(body, (int)len, request.out);
		FCGX_Finish_r(&request);
	}
	return 0;
}
