// Tasks that change the same data name a mutex. A task whose mutex is taken is set aside, and its
// worker runs another.
#include <leveret/leveret.hpp>

#include <cstdio>

void deposit(int amount, lev::inout<long> account) {
  account[0] += amount;
}

int main() {
  constexpr int count = 1000;
  const auto deposit_procedure = lev::define("deposit", deposit);
  long accounts[2] = {0, 0};

  lev::runtime runtime;
  lev::mutex_id locks[2];
  for (lev::mutex_id& lock : locks) {
    if (runtime.make_mutex(&lock) != lev::status::ok) return 1;
  }
  for (int i = 0; i < count; ++i) {
    runtime.submit(lev::locks(locks[i % 2]), deposit_procedure, i, lev::view(&accounts[i % 2], 1));
  }
  const bool done = runtime.wait_for_completion().code == lev::status::ok;
  std::printf("accounts hold %ld and %ld\n", accounts[0], accounts[1]);
  return done && accounts[0] == 249500 && accounts[1] == 250000 ? 0 : 1;
}
