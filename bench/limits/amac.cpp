// The three chains by hand; see amac.hpp. Where an item ends, its place starts the next one at
// once, so that `width` are in flight until the items run out; a place without an item is idle.
#include "limits/amac.hpp"

namespace bench {
namespace {

// turns() gives each place its turn, round robin, until all are idle. start(place) starts an item;
// turn(place) takes it one access further and is true when it has ended.
template <class Place, class Start, class Turn>
void turns(std::size_t begin, std::size_t end, unsigned width, Start&& start, Turn&& turn) {
  Place places[amac_width_max];
  unsigned used = 0;
  for (; used < width && begin < end; ++used) start(places[used], begin++);
  for (unsigned at = 0; begin < end; at = at + 1 == used ? 0 : at + 1) {
    if (turn(places[at])) start(places[at], begin++);
  }
  while (used > 0) {
    for (unsigned at = 0; at < used;) {
      if (turn(places[at])) {
        places[at] = places[--used];
      } else {
        ++at;
      }
    }
  }
}

}  // namespace

ranks amac_rank(const scattered_lists& lists, std::size_t begin, std::size_t end, unsigned width) {
  struct place {
    const list_node* node;
  };
  ranks total;
  const auto start = [&](place& p, std::size_t list) {
    p.node = lists.head(list);
    __builtin_prefetch(p.node);
  };
  const auto turn = [&](place& p) {
    ++total.nodes;
    total.sum += p.node->value;
    p.node = p.node->next;
    __builtin_prefetch(p.node);
    return p.node == nullptr;
  };
  turns<place>(begin, end, width, start, turn);
  return total;
}

std::uint64_t amac_probe(const hash_table& table, std::size_t begin, std::size_t end,
                         unsigned width) {
  struct place {
    std::uint64_t key;
    const hash_node* const* head;  // null once it has been read
    const hash_node* node;
  };
  std::uint64_t sum = 0;
  const auto start = [&](place& p, std::size_t i) {
    p.key = table.probe_key(i);
    p.head = table.head(p.key);
    __builtin_prefetch(p.head);
  };
  const auto turn = [&](place& p) {
    if (p.head != nullptr) {
      p.node = *p.head;
      p.head = nullptr;
    } else {
      if (p.node->key == p.key) {
        sum += p.node->value;
        return true;
      }
      p.node = p.node->next;
    }
    if (p.node == nullptr) return true;
    __builtin_prefetch(p.node);
    __builtin_prefetch(reinterpret_cast<const char*>(p.node) + sizeof *p.node - 1);
    return false;
  };
  turns<place>(begin, end, width, start, turn);
  return sum;
}

std::uint64_t amac_find(const search_tree& tree, std::size_t begin, std::size_t end,
                        unsigned width) {
  struct place {
    std::uint64_t key;
    const tree_node* node;
    unsigned levels_left;
  };
  std::uint64_t sum = 0;
  const auto start = [&](place& p, std::size_t i) {
    p = {tree.probe_key(i), tree.root(), tree.levels()};
  };
  const auto turn = [&](place& p) {
    const std::uint64_t link = p.node->links[search_tree::place_of(p.node, p.key)];
    if (--p.levels_left == 0) {
      sum += link;
      return true;
    }
    p.node = tree.node(link);
    for (std::size_t line = 0; line < sizeof *p.node; line += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(p.node) + line);
    }
    return false;
  };
  turns<place>(begin, end, width, start, turn);
  return sum;
}

}  // namespace bench
