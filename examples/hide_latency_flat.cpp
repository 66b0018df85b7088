// Hides memory latency in a flat loop: sixteen coroutines share the look-ups.
#include <leveret/interleave_flat.hpp>

#include <cstdio>
#include <vector>

// A hash table with chains: `first` has an index into `nodes`, or -1, for each remainder.
struct table {
  struct node {
    int key;
    int next;
  };
  std::vector<int> first;
  std::vector<node> nodes;

  const int* head(int key) const { return &first[static_cast<std::size_t>(key) % first.size()]; }
};

// A plain look-up, except for co_await: ask for the next node, and let other look-ups go on.
lev::flat look_up(lev::items& left, const table& t, std::vector<char>& found) {
  for (const std::size_t i : left) {
    const int key = static_cast<int>(i);
    const int* const head = t.head(key);
    co_await lev::fetch(head);
    for (int at = *head; at >= 0 && found[i] == 0;) {
      const table::node* const n = &t.nodes[static_cast<std::size_t>(at)];
      co_await lev::fetch(n);
      found[i] = n->key == key;
      at = n->next;
    }
  }
}

int main() {
  table t{std::vector<int>(100'003, -1), {}};
  for (int i = 0; i < 100'000; ++i) {  // even numbers only
    int& head = t.first[static_cast<std::size_t>(2 * i) % t.first.size()];
    t.nodes.push_back({2 * i, head});
    head = i;
  }

  std::vector<char> found(200'000);
  lev::interleave_flat(16, found.size(), [&](lev::items& left) { return look_up(left, t, found); });

  long odd = 0, even = 0;
  for (std::size_t i = 0; i < found.size(); ++i) (i % 2 == 0 ? even : odd) += found[i];
  std::printf("found %ld even and %ld odd numbers\n", even, odd);
  return odd == 0 && even == 100'000 ? 0 : 1;
}
