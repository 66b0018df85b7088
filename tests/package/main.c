/* A user's program in C11: opens a runtime, runs one task and reads what it wrote, through
 * <leveret/leveret.h> only. Built by tools/check package with -std=c11 -pedantic and warnings as
 * errors. */
#include <leveret/leveret.h>
#include <stdio.h>

static int twice(const lev_call* call) {
  const lev_argument* argument = &call->arguments[0];
  int32_t* values = (int32_t*)(uintptr_t)argument->address;
  for (uint64_t i = 0; i < argument->row_bytes / sizeof *values; ++i) values[i] *= 2;
  return 0;
}

static int say(const char* what, lev_status code) {
  fprintf(stderr, "%s: %s: %s\n", what, lev_status_name(code), lev_last_message());
  return 1;
}

int main(void) {
  const lev_kind kinds[] = {LEV_INOUT};
  lev_procedure_id procedure = 0;
  lev_status code = lev_register("twice", twice, NULL, kinds, 1, &procedure);
  if (code != LEV_OK) return say("lev_register", code);

  lev_runtime* runtime = NULL;
  code = lev_open(NULL, &runtime);
  if (code != LEV_OK) return say("lev_open", code);

  int32_t values[4] = {1, 2, 3, 4};
  const lev_argument argument = lev_memory(LEV_INOUT, values, sizeof values[0], 4);
  lev_ticket ticket = 0;
  code = lev_submit(runtime, procedure, &argument, 1, &ticket);
  if (code != LEV_OK) return say("lev_submit", code);
  code = lev_wait(runtime, ticket, LEV_NO_TIMEOUT, NULL);
  if (code != LEV_OK) return say("lev_wait", code);
  code = lev_close(runtime);
  if (code != LEV_OK) return say("lev_close", code);

  printf("leveret %s: %d %d %d %d\n", lev_version(), values[0], values[1], values[2], values[3]);
  return values[0] == 2 && values[3] == 8 ? 0 : 1;
}
