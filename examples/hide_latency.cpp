// Hides memory latency: while one look-up waits for memory, fifteen others go on.
#include <leveret/interleave.hpp>

#include <cstdio>
#include <memory>
#include <vector>

struct node {
  int key;
  std::unique_ptr<node> less, more;
};

void insert(std::unique_ptr<node>& place, int key) {
  if (place == nullptr) {
    place = std::make_unique<node>(node{key, nullptr, nullptr});
  } else {
    insert(key < place->key ? place->less : place->more, key);
  }
}

// A plain look-up, except for s.fetch(n): ask for the node, give way, go on when it is there.
template <class Strand>
bool contains(const node* n, int key, Strand& s) {
  while (n != nullptr && s.fetch(n)->key != key) n = (key < n->key ? n->less : n->more).get();
  return n != nullptr;
}

int main() {
  std::unique_ptr<node> root;
  for (int i = 0; i < 100'000; ++i) insert(root, i * 7919 % 100'003 * 2);  // even numbers only

  std::vector<char> found(200'000);
  lev::interleave(lev::strands_automatic, found.size(), [&](std::size_t i, auto& s) {
    found[i] = contains(root.get(), static_cast<int>(i), s);
  });

  long odd = 0, even = 0;
  for (std::size_t i = 0; i < found.size(); ++i) (i % 2 == 0 ? even : odd) += found[i];
  std::printf("found %ld even and %ld odd numbers\n", even, odd);
  return odd == 0 && even > 99'990 ? 0 : 1;
}
