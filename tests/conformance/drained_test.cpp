// Conformance: the end of a task whose outputs are still on their way is told before its worker
// takes another one in hand: its callback may wait for that one.
#include <gtest/gtest.h>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class drained_test : public machine_test {};
LEV_ON_SIM(drained_test);

struct drained_scene {
  runtime* home = nullptr;
  ticket drained;
  ticket child;
  status of_callback = status::pending;
  status of_child = status::pending;
};

const auto fills = define("drained.fills", [](inout<int> a) { a[0] = 1; });
const auto waits_for_drained = define("drained.waits", [](ref<drained_scene> s) {
  s.to->of_child = s.to->drained.wait_outcome().code;
});
// The callback and its parent wait for the child: the one that is first has its outcome.
const auto awaits_child = define("drained.awaits_child", [](ref<drained_scene> s, inout<int> a) {
  a[0] = 1;
  s.to->drained.then(
      [](void* scene) {
        auto& of = *static_cast<drained_scene*>(scene);
        of.of_callback = of.child.wait_outcome().code;
      },
      s.to);
  s.to->child = s.to->home->submit(waits_for_drained, s);
  static_cast<void>(s.to->child.wait_outcome());
});

LEV_TEST(drained_test, a_callback_that_waits_for_the_next_task_is_before_it) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  c.contexts = 1;  // no other stack on which one could go on
  runtime& r = open(c);
  static int memory[4][1024];
  drained_scene s;
  s.home = &r;
  ticket before[] = {r.submit(fills, memory[0]), r.submit(fills, memory[1])};
  s.drained = r.submit(fills, memory[2]);
  r.submit(awaits_child, ref{&s}, memory[3]).wait();
  wait_all(before, 2);
  EXPECT_EQ(s.of_callback, status::ok);
}

}  // namespace
}  // namespace lev::test
