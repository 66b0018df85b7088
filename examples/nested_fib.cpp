// A task that submits tasks and waits for them: its worker runs others meanwhile, so that one
// worker is enough.
#include <leveret/leveret.hpp>

#include <cstdio>

// A pointer is not an argument, as it does not say what is read and written. The data that a task
// needs to submit others travels in a struct.
struct where {
  lev::runtime* runtime;
};

void fib(where here, int n, lev::result<long> sum);
LEV_PROCEDURE(fib);

void fib(where here, int n, lev::result<long> sum) {
  if (n < 2) {
    sum = n;
    return;
  }
  long a = 0;
  long b = 0;
  lev::ticket child = here.runtime->submit<fib>(here, n - 1, a);
  here.runtime->submit<fib>(here, n - 2, b).wait();
  child.wait();
  sum = a + b;
}

int main() {
  lev::runtime runtime;
  long sum = 0;
  runtime.submit<fib>(where{&runtime}, 15, sum).wait();
  std::printf("fib(15) = %ld\n", sum);
  return sum == 610 ? 0 : 1;
}
