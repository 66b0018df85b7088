/* The same in C: a procedure by name, arguments from makers, a status from every call. */
#include <leveret/leveret.h>

#include <stdio.h>
#include <string.h>

static int saxpy(const lev_call* call) {
  float a;
  memcpy(&a, &call->arguments[0].address, sizeof a); /* a value travels in the argument itself */
  const float* x = (const float*)(uintptr_t)call->arguments[1].address;
  float* y = (float*)(uintptr_t)call->arguments[2].address;
  for (size_t i = 0; i < call->arguments[1].row_bytes / sizeof(float); ++i) y[i] += a * x[i];
  return 0;
}

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, lev_last_message());
  return 1;
}

int main(void) {
  enum { count = 1000 };
  static float x[count], y[count];
  const float a = 3;
  for (int i = 0; i < count; ++i) x[i] = 1, y[i] = 2;

  const lev_kind kinds[] = {LEV_VALUE, LEV_IN, LEV_INOUT};
  lev_procedure_id procedure = 0;
  if (lev_register("saxpy", saxpy, NULL, kinds, 3, &procedure) != LEV_OK) return fail("register");
  lev_runtime* runtime = NULL;
  if (lev_open(NULL, &runtime) != LEV_OK) return fail("open");

  const lev_argument arguments[] = {lev_value(&a, sizeof a),
                                    lev_memory(LEV_IN, x, sizeof x[0], count),
                                    lev_memory(LEV_INOUT, y, sizeof y[0], count)};
  lev_ticket ticket = 0;
  if (lev_submit(runtime, procedure, arguments, 3, &ticket) != LEV_OK) return fail("submit");
  if (lev_wait(runtime, ticket, LEV_NO_TIMEOUT, NULL) != LEV_OK) return fail("wait");
  if (lev_close(runtime) != LEV_OK) return fail("close");
  printf("y[999] = %g\n", y[count - 1]);
  return y[count - 1] == 5 ? 0 : 1;
}
