// Arguments: the types a procedure declares, and what a caller may pass for them.
//
//   procedure's parameter   caller passes
//   T (<= 16 bytes)         a value converted to T
//   lev::result<T>          a T variable that outlives the task
//   lev::in<T>              an array, anything with data() and size(), lev::view, lev::strided
//   lev::out<T>, inout<T>   the same, not const
//   lev::range              a lev::range
//   lev::far<T>             as lev::inout<T>; lev::far<const T>: as lev::in<T>. Stays where it is.
//
// Wrap memory in lev::sliced(...) to let dicing cut it. No alignment is asked beyond that of T, and
// copies have at least that. An argument that cannot be passed does not compile, and the message
// says why. Nor does a temporary that owns its elements, such as a std::vector or a std::array:
// give it a name. A temporary view, such as a std::span, is taken. If it is of a class of your own
// whose const objects give const elements, name it, pass lev::view(v.data(), v.size()), or
// specialise std::ranges::enable_borrowed_range.
#ifndef LEVERET_ARGS_HPP
#define LEVERET_ARGS_HPP

#include <leveret/memory_view.hpp>
#include <leveret/task.hpp>

#include <cstdint>
#include <cstring>
#include <string_view>  // declares std::ranges::enable_borrowed_range; <ranges> takes far longer
#include <type_traits>
#include <utility>

// Functions of Leveret that take the caller's types are called by their whole names: the namespace
// of such a type may have a view() or an each() of its own.
namespace lev {

namespace detail {
template <class Pointer>
using const_at = const std::remove_pointer_t<Pointer>;
// An object whose elements are const when it is has them inside: a view's are what they are, unless
// it says of itself, as views in std do, that elements outlive it. Those of a std::array may be
// const anyway; it is a tuple of them.
template <class T>
concept has_own_elements =
    !std::ranges::enable_borrowed_range<T> &&
    (requires(T& it, const T& same) {
      requires !std::is_same_v<decltype(it.data()), decltype(same.data())>;
    } || requires(T& it) {
      requires std::is_same_v<const std::tuple_element_t<0, T>, const_at<decltype(it.data())>>;
    });
// A temporary that owns its elements would destroy them before the task runs.
template <class T>
concept no_temporary_owner =
    std::is_lvalue_reference_v<T> || (std::is_trivially_destructible_v<T> && !std::is_array_v<T> &&
                                      !has_own_elements<std::remove_const_t<T>>);
// The bytes of so many elements. What does not fit is refused at submit, not wrapped.
template <class T>
constexpr std::ptrdiff_t bytes_apart(std::ptrdiff_t elements) noexcept {
  constexpr std::ptrdiff_t each = sizeof(T), most = PTRDIFF_MAX / each;
  return elements > most ? PTRDIFF_MAX : elements < -most ? -PTRDIFF_MAX : elements * each;
}
}  // namespace detail

// A small output: assign to it once. The caller's variable changes when the task completes; it
// keeps its value if nothing is assigned.
template <class T>
class result {
 public:
  using element_type = T;
  explicit result(T* place) noexcept : place_(place) {}
  const result& operator=(const T& value) const noexcept {
    *place_ = value;
    return *this;
  }

 private:
  T* place_;
};

// Memory as a caller names it.
template <class T>
struct memory {
  T* data;
  std::size_t row_size;
  std::size_t rows;
  std::ptrdiff_t stride_bytes;
  bool is_sliced;
  bool has_rows;  // named by strided(): slices are rows
};

// view() names `size` contiguous elements.
template <class T>
constexpr memory<T> view(T* data, std::size_t size) noexcept {
  return {data, size, 1, static_cast<std::ptrdiff_t>(size * sizeof(T)), false, false};
}

// strided() names `rows` rows of `row_size` elements whose starts are `stride` elements apart, such
// as a block of a matrix.
template <class T>
constexpr memory<T> strided(T* data, std::size_t rows, std::size_t row_size,
                            std::ptrdiff_t stride) noexcept {
  return {data, row_size, rows, detail::bytes_apart<T>(stride), false, true};
}

// A column: memory of which each task of a bulk gets its own part.
template <class T>
struct column {
  T* data;                      // of task 0
  std::size_t row_size;         // elements of a task
  std::ptrdiff_t stride_bytes;  // from task to task
};

namespace detail {
// A body may hand on what it got, with its rows as they are.
template <class T>
constexpr memory<T> rows_of(const memory_view<T>& v) noexcept {
  if (v.rows() == 1) return lev::view(v.data(), v.size());
  return {v.data(), v.row_size(), v.rows(), v.stride_bytes(), false, true};
}
}  // namespace detail

// each() names a column of a bulk (runtime::submit_bulk): task i gets the `row_size` elements at
// `data + i * stride`; for a value or a result, one element. Without a stride they follow each
// other. From a container, or a temporary span, each task gets one element. lev::in and the like
// are refused if their rows are apart, as by their end().
template <class T>
constexpr column<T> each(T* data, std::size_t row_size, std::ptrdiff_t stride) noexcept {
  return {data, row_size, detail::bytes_apart<T>(stride)};
}
template <class T>
constexpr column<T> each(T* data, std::size_t row_size = 1) noexcept {
  return lev::each(data, row_size, static_cast<std::ptrdiff_t>(row_size));
}
template <class Container>
  requires detail::no_temporary_owner<Container>
constexpr auto each(Container&& c) noexcept(!requires { detail::rows_of(c); })
    -> decltype(lev::each(c.data(), c.size())) {
  if constexpr (requires { detail::rows_of(c); }) (void)c.end();
  return lev::each(c.data(), 1);
}

// Far memory: declared, but not staged. It is large, the task needs little of it, and learns which
// parts only while it runs. task_context::get() fetches elements (leveret/this_task.hpp). One row.
//
// Paper: a task on the Cell was given an address and did its own DMA (CellMT, Listing 1).
template <class T>
class far {
 public:
  far(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  std::size_t size() const noexcept { return size_; }
  // For a nested task: far memory, or a part of it, can be handed on.
  memory<T> part(std::size_t first, std::size_t count) const noexcept {
    return lev::view(data_ + first, count);
  }

 private:
  friend class task_context;
  T* data_;
  std::size_t size_;
};

namespace detail {

template <class T>
constexpr memory<T> as_memory(const memory<T>& m) noexcept {
  return m;
}
template <class T, std::size_t Size>
constexpr memory<T> as_memory(T (&array)[Size]) noexcept {
  return lev::view(array, Size);
}
template <class Container>
constexpr auto as_memory(Container&& c) noexcept -> decltype(lev::view(c.data(), c.size())) {
  if constexpr (requires { detail::rows_of(c); })
    return detail::rows_of(c);
  else
    return lev::view(c.data(), c.size());
}
template <class T>
memory<T> as_memory(const far<T>& all) noexcept {
  return all.part(0, all.size());
}

template <class T>
constexpr bool fits_value = std::is_trivially_copyable_v<T> && sizeof(T) <= value_bytes_max;

template <class T>
argument memory_argument(kind what, const memory<T>& m) noexcept {
  argument a;
  a.address = reinterpret_cast<std::uintptr_t>(m.data);
  // A length that does not fit is refused at submit, not wrapped.
  a.row_bytes =
      m.row_size > ~std::uint64_t{0} / sizeof(T) ? ~std::uint64_t{0} : m.row_size * sizeof(T);
  a.stride_bytes = m.stride_bytes;
  a.rows = m.rows > 0xffffffffu ? 0xffffffffu : static_cast<std::uint32_t>(m.rows);
  a.unit_bytes = sizeof(T);
  a.what = what;
  constexpr std::uint8_t aligned = align_flags(alignof(T));
  a.flags = static_cast<std::uint8_t>((m.is_sliced ? argument_sliced : 0) |
                                      (m.has_rows ? argument_rows : 0) | aligned);
  return a;
}

// parameter<P> knows, for a procedure's parameter type P: its kind, how a caller's value becomes an
// argument (pack), and how an argument becomes the parameter inside the worker (unpack).
template <class P>
struct parameter {
  static_assert(!std::is_reference_v<P> && !std::is_pointer_v<P>,
                "a procedure's parameter must be a value, lev::result<T>, lev::in<T>, lev::out<T>, "
                "lev::inout<T> or "
                "lev::range: references and pointers do not say what the task reads and writes; "
                "a pointer that Leveret need not follow goes into a struct of your own");
  static_assert(std::is_pointer_v<P> || std::is_reference_v<P> || fits_value<P>,
                "a value parameter must be trivially copyable and at most 16 bytes; pass larger "
                "data as lev::in<T>");
  static constexpr kind what = kind::value;
  static argument pack(const P& value) noexcept {
    argument a;
    unsigned char bytes[value_bytes_max] = {};
    std::memcpy(bytes, __builtin_addressof(value), sizeof(P));
    std::memcpy(&a.address, bytes, 8);
    std::memcpy(&a.row_bytes, bytes + 8, 8);
    a.unit_bytes = sizeof(P);
    return a;
  }
  static P unpack(const argument& a) noexcept {
    struct {
      unsigned char bytes[sizeof(P)];
    } copy;
    constexpr std::size_t first = sizeof(P) < 8 ? sizeof(P) : 8;
    std::memcpy(copy.bytes, &a.address, first);
    if constexpr (sizeof(P) > 8) std::memcpy(copy.bytes + 8, &a.row_bytes, sizeof(P) - 8);
    return __builtin_bit_cast(P, copy);
  }
};

// A column as an argument of kind `what`: that of task 0, and how far the next one is.
template <class T>
argument column_argument(kind what, const column<T>& c) noexcept {
  memory<T> first = lev::view(c.data, c.row_size);
  first.stride_bytes = c.stride_bytes;
  argument a = memory_argument(what, first);
  a.flags |= argument_each;
  return a;
}

template <>
struct parameter<range> {
  static constexpr kind what = kind::range;
  static argument pack(range r) noexcept {
    argument a;
    a.address = r.begin;
    a.row_bytes = r.end;
    a.what = kind::range;
    a.flags = argument_sliced;
    return a;
  }
  static range unpack(const argument& a) noexcept { return {a.address, a.row_bytes}; }
};

template <class T>
struct parameter<result<T>> {
  static_assert(
      fits_value<T>,
      "a result must be trivially copyable and at most 16 bytes; use lev::out<T> for more");
  static constexpr kind what = kind::result;
  static argument pack(T& place) noexcept {
    argument a;
    a.address = reinterpret_cast<std::uintptr_t>(__builtin_addressof(place));
    a.row_bytes = sizeof(T);
    a.stride_bytes = sizeof(T);
    a.unit_bytes = sizeof(T);
    a.what = kind::result;
    return a;
  }
  static result<T> unpack(const argument& a) noexcept {
    return result<T>(reinterpret_cast<T*>(a.address));
  }
};

template <class View, class T, kind What>
struct memory_parameter {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "memory arguments hold trivially copyable, non-const elements: write "
                "lev::in<float>, not lev::in<const float>");
  static_assert(sizeof(T) <= 0xffff, "an element is at most 65535 bytes");
  static_assert(alignof(T) <= alignment_max,
                "an element's alignment is at most 4096 bytes, a page: that is what a local store "
                "has; align what is in it by hand");
  static constexpr kind what = What;
  template <no_temporary_owner Source>
  static argument pack(Source&& source) noexcept {
    constexpr bool is_memory = requires { detail::as_memory(source); };
    static_assert(is_memory,
                  "memory is passed as an array, as an object with data() and size(), or as "
                  "lev::view(pointer, count): one element is lev::view(&element, 1)");
    if constexpr (is_memory) {
      auto m = detail::as_memory(source);
      using element = std::remove_pointer_t<decltype(m.data)>;
      static_assert(std::is_same_v<std::remove_const_t<element>, T>,
                    "the caller's elements have another type than the procedure's");
      static_assert(What == kind::in || !std::is_const_v<element>,
                    "an output argument needs memory that is not const");
      return memory_argument(What, m);
    }
  }
  template <class Source>
    requires(!no_temporary_owner<Source>)
  static argument pack(Source&&) noexcept {
    static_assert(no_temporary_owner<Source>,
                  "the elements of a temporary are gone when the task runs: give it a name");
    return {};
  }
  static View unpack(const argument& a) noexcept {
    return View(reinterpret_cast<T*>(a.address), a.row_bytes / sizeof(T), a.rows,
                static_cast<std::ptrdiff_t>(a.stride_bytes));
  }
};

template <class T>
struct parameter<far<T>> {
  using element = std::remove_const_t<T>;
  using view = std::conditional_t<std::is_const_v<T>, in<element>, inout<element>>;
  using plain = memory_parameter<view, element, std::is_const_v<T> ? kind::in : kind::inout>;
  static_assert(alignof(element) <= far_alignment_max,
                "an element of far memory is aligned to at most 128 bytes, as a get()'s buffer is");
  static constexpr kind what = plain::what;
  template <class Source>
  static argument pack(Source&& source) noexcept {
    argument a = plain::pack(static_cast<Source&&>(source));
    a.flags |= argument_far;
    return a;
  }
  static far<T> unpack(const argument& a) noexcept {
    return far<T>(reinterpret_cast<T*>(a.address), a.row_bytes / sizeof(T));
  }
};

template <class T>
struct parameter<in<T>> : memory_parameter<in<T>, T, kind::in> {};
template <class T>
struct parameter<out<T>> : memory_parameter<out<T>, T, kind::out> {};
template <class T>
struct parameter<inout<T>> : memory_parameter<inout<T>, T, kind::inout> {};

// A value may have an element_type of its own: std::span has.
template <class T>
struct element_of {
  using type = T;
};
template <class T>
  requires requires { typename T::element_type; } && (parameter<T>::what != kind::value)
struct element_of<T> {
  using type = typename T::element_type;
};

template <class P, class T>
argument pack_column(const column<T>& c) noexcept {
  using element = typename element_of<P>::type;
  constexpr kind what = parameter<P>::what;
  static_assert(what != kind::range,
                "a bulk has no columns of ranges; pass begins and ends as values");
  static_assert(std::is_same_v<std::remove_const_t<T>, element>,
                "the column's elements have another type than the procedure's");
  static_assert(what == kind::value || what == kind::in || !std::is_const_v<T>,
                "an output column needs memory that is not const");
  return column_argument(what, c);
}
// pack_part() is parameter<P>::pack() for the description of a bulk, where it may be a column.
template <class P, class Argument>
argument pack_part(Argument&& a) noexcept {
  if constexpr (requires { pack_column<P>(a); })
    return pack_column<P>(a);
  else
    return parameter<P>::pack(static_cast<Argument&&>(a));
}

}  // namespace detail

// sliced() marks memory that dicing may cut: along its rows, or along its elements if it has one
// row. Every sliced argument of a task, and its ranges, must have the same number of
// rows/elements/indices.
template <detail::no_temporary_owner Source>
constexpr auto sliced(Source&& source) noexcept {
  auto m = detail::as_memory(source);
  m.is_sliced = true;
  return m;
}

}  // namespace lev

#endif
