// See print.hpp. Blocks become functions, tasks typed procedures, tickets and memory variables at
// namespace scope. Calls of the C API become those of C++ that they are.
#include "exercise/print.hpp"

#include "exercise/print_head.hpp"

#include <algorithm>

namespace lev::exercise {

namespace {

std::string str(std::uint64_t n) {
  return std::to_string(n);
}
class printer {
 public:
  explicit printer(const program& p) : p_(p) {}

  std::string all() {
    out_ = print_head;
    for (std::uint32_t n = 0; n < scopes_max; ++n)
      out_ += "[[maybe_unused]] alignas(8) static std::uint8_t field_" + str(n) + "[" +
              str(field_rows * field_row_bytes) + "];\n[[maybe_unused]] static " +
              "std::unique_ptr<lev::ordered> scope_" + str(n) + ";\n";
    for (std::uint32_t t = 0; t < p_.tasks.size(); ++t) declare_task(t);
    for (std::uint32_t b = 0; b < p_.blocks.size(); ++b)
      out_ += "static void block_" + str(b) + "();\n";
    out_ += "\n";
    for (std::uint32_t t = 0; t < p_.tasks.size(); ++t) define_task(t);
    for (std::uint32_t b = 0; b < p_.blocks.size(); ++b) define_block(b);
    define_main();
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += "  " + text + "\n"; }
  static std::string name(std::uint32_t t) { return "\"task " + str(t) + "\""; }
  static std::string ticket(std::uint32_t t) { return "t" + str(t); }

  std::string parameters(const task_spec& t) const {
    std::string all;
    const auto add = [&](const std::string& text) { all += (all.empty() ? "" : ", ") + text; };
    if (needs_board(t)) add("board_ref b");
    if (t.what == shape::bulk) add("[[maybe_unused]] std::uint32_t piece");
    if (t.what == shape::sliced) add("[[maybe_unused]] lev::range part");
    const std::string element = t.field != nobody ? "<std::uint8_t>" : "<std::uint64_t>";
    if (t.has_input) add("lev::in" + element);
    if (t.own.what == kind::out) add("[[maybe_unused]] lev::out" + element + " own");
    if (t.own.what == kind::inout && !t.own.is_far)
      add("[[maybe_unused]] lev::inout" + element + " own");
    if (t.own.is_far) add("lev::far<std::uint64_t> own");
    if (t.has_result) add("[[maybe_unused]] lev::result<std::uint64_t> result");
    return all;
  }
  static bool needs_board(const task_spec& t) {
    const bool counts = t.end == ending::crash && t.attempts != every_attempt;
    return counts || t.sets_flag != nobody || t.spins_on != nobody;
  }
  std::string memory(const std::string& variable, const memory_spec& m, bool is_sliced) const {
    std::string text = m.rows > 1 ? "lev::strided(" + variable + ", " + str(m.rows) + ", " +
                                        str(m.words) + ", " + str(m.words + m.gap) + ")"
                                  : "lev::view(" + variable + ", " + str(m.words) + ")";
    return is_sliced ? "lev::sliced(" + text + ")" : text;
  }
  // Rows of a bulk's pieces, the first of them for piece 0.
  std::string rows(const std::string& variable, const task_spec& t, bool as_column) const {
    const std::uint32_t step = t.own.words + t.own.gap;
    const std::string last = t.is_backward ? str((t.pieces - 1) * step) : "0";
    const std::string sign = t.is_backward ? "-" : "";
    if (as_column)
      return "lev::each(" + variable + " + " + last + ", " + str(t.own.words) + ", " + sign +
             str(step) + ")";
    return "lev::view(" + variable + " + " + last + (t.is_backward ? " - " : " + ") + "i * " +
           str(step) + ", " + str(t.own.words) + ")";
  }
  std::string bulk_arguments(std::uint32_t task, bool as_columns) const {
    const task_spec& t = p_.tasks[task];
    const std::string n = str(task);
    std::string all;
    if (t.has_input)
      all += ", " + (t.shares_input ? memory("input_" + n, t.own, false)
                                    : rows("input_" + n, t, as_columns));
    if (t.own.what != kind::value) all += ", " + rows("own_" + n, t, as_columns);
    const std::string last = t.is_backward ? str(t.pieces - 1) : "0";
    if (t.has_result && as_columns)
      all += ", lev::each(result_" + n + " + " + last + ", 1, " + (t.is_backward ? "-1)" : "1)");
    else if (t.has_result)
      all += ", result_" + n + "[" + last + (t.is_backward ? " - i]" : " + i]");
    return all;
  }
  static std::string in_field(std::uint32_t field, const field_block& b) {
    return "lev::strided(field_" + str(field) + " + " + str(b.row * field_row_bytes + b.byte) +
           ", " + str(b.rows) + ", " + str(b.bytes) + ", " + str(field_row_bytes) + ")";
  }
  static std::string field_arguments(const task_spec& t) {
    std::string all;
    if (t.has_input) all += ", " + in_field(t.field, t.field_input);
    if (t.own.what != kind::value) all += ", " + in_field(t.field, t.field_own);
    if (t.has_result)
      all += ", reinterpret_cast<std::uint64_t*>(field_" + str(t.field) + ")[" +
             str(t.field_result_row) + "]";
    return all;
  }
  std::string arguments(std::uint32_t task) const {
    const task_spec& t = p_.tasks[task];
    const bool is_sliced = t.what == shape::sliced;
    std::string all;
    if (needs_board(t)) all += ", board";
    if (t.field != nobody) return all + field_arguments(t);
    if (is_sliced) all += ", lev::range{0, " + str(t.pieces) + "}";
    if (t.has_input && t.reads != nobody)
      all += ", " + memory("own_" + str(t.reads), p_.tasks[t.reads].own, false);
    else if (t.has_input)
      all += ", " + memory("input_" + str(task), t.own, is_sliced);
    if (t.own.what != kind::value) all += ", " + memory("own_" + str(task), t.own, is_sliced);
    if (t.has_result) all += ", result_" + str(task);
    return all;
  }
  void declare_words(const std::string& variable, const memory_spec& m) {
    const std::string n = str(words_of(m));
    if (m.is_shared)
      out_ += "static std::uint64_t* const " + variable + " = shared_words(" + n + ");\n";
    else
      out_ += "static std::uint64_t " + variable + "[" + n + "];\n";
  }
  void declare_task(std::uint32_t task) {
    const task_spec& t = p_.tasks[task];
    const std::string n = str(task);
    out_ += "[[maybe_unused]] static lev::ticket " + ticket(task) + ";\n";
    if (t.own.what != kind::value && t.field == nobody) declare_words("own_" + n, t.own);
    if (t.has_input && t.reads == nobody && t.field == nobody) declare_words("input_" + n, t.own);
    if (t.has_result && t.what == shape::bulk)
      out_ += "static std::uint64_t result_" + n + "[" + str(t.pieces) + "];\n";
    else if (t.has_result && t.field == nobody)
      out_ += "static std::uint64_t result_" + n + " = 7;\n";
    out_ += "static void task_" + n + "(" + parameters(t) + ");\nLEV_PROCEDURE(task_" + n + ");\n";
  }
  void define_task(std::uint32_t task) {
    const task_spec& t = p_.tasks[task];
    out_ += "static void task_" + str(task) + "(" + parameters(t) + ") {\n";
    if (t.has_hooks) line("// has a dice hook, which cuts in two or declines, and a cost hook");
    if (t.turns != 0) line("for (int i = 0; i < " + str(t.turns) + "; ++i) asm volatile(\"\");");
    if (t.end == ending::crash && t.what == shape::sliced)
      line("if (part.begin <= " + str(t.bad_element) + " && " + str(t.bad_element) +
           " < part.end) raise(SIGKILL);");
    else if (t.end == ending::crash && t.attempts == every_attempt)
      line("raise(SIGKILL);");
    else if (t.end == ending::crash)
      line("if (b.to->attempts[" + str(task) + "]++ < " + str(t.attempts) + ") raise(SIGKILL);");
    if (t.end == ending::scribble) line("// spoils its lane, then does what is forbidden");
    if (t.sets_flag != nobody) line("b.to->flags[" + str(t.sets_flag) + "] = true;");
    if (t.spins_on != nobody) line("while (!b.to->flags[" + str(t.spins_on) + "]) sched_yield();");
    if (t.body != nobody) line("block_" + str(t.body) + "();");
    if (t.own.is_far) {
      line("lev::task_context task = lev::this_task();");
      line("std::uint64_t* words = task.get(own, 0, own.size());");
      line("task.wait();");
      line("for (std::size_t i = 0; i < own.size(); ++i) ++words[i];");
      line("task.put(own, 0, own.size(), words);");
      line("task.wait();");
    } else if (t.own.what != kind::value && !t.own.is_left) {
      line("for (std::size_t r = 0; r < own.rows(); ++r)");
      line(std::string("  for (std::size_t i = 0; i < own.row_size(); ++i) own.row(r)[i] ") +
           (t.own.what == kind::out ? "= i;" : "+= 1;"));
    }
    if (t.has_result && !t.leaves_result) line("result = 8;");
    if (t.end == ending::throws || t.end == ending::code) {
      const std::string which =
          t.what == shape::bulk ? "if (" + str(t.bad_pieces) + "u >> piece & 1) " : "";
      line(which + "throw std::runtime_error(" + name(task) + ");");
    }
    out_ += "}\n";
  }
  std::string options(const step& s) const {
    std::string o = "lev::options()";
    for (const std::uint32_t other : s.list) {
      for (std::uint32_t i = 0; i < s.repeat; ++i) o += ".after(" + ticket(other) + ")";
    }
    if (s.after_shown != nobody) o += ".after_id(shown[" + str(s.after_shown) + "])";
    for (unsigned m = 0; m < mutexes_max; ++m) {
      if ((s.locks >> m & 1) != 0) o += ".locks(mutexes[" + str(m) + "])";
    }
    if (s.priority != 0) o += ".priority(" + std::to_string(s.priority) + ")";
    if (s.key != 0) o += ".key(" + str(s.key) + ")";
    if (s.grain != 0) o += ".grain(" + str(s.grain) + ")";
    if (s.attempts != 0) o += ".max_attempts(" + str(s.attempts) + ")";
    return o;
  }
  void print_submit(const step& s) {
    const task_spec& t = p_.tasks[s.a];
    const std::string n = str(s.a);
    if (t.what == shape::bulk && t.by_columns) {
      line("attempt(" + name(s.a) + ", [] {");
      line("  static std::uint32_t pieces[" + str(t.pieces) + "];");
      line("  for (std::uint32_t i = 0; i < " + str(t.pieces) + "; ++i) pieces[i] = i;");
      line("  " + ticket(s.a) + " = home->submit_bulk(" + str(t.pieces) +
           ", lev::detail::procedure_of<task_" + n + ">(), " + (needs_board(t) ? "board, " : "") +
           "lev::each(pieces, 1)" + bulk_arguments(s.a, true) + ");");
      line("});");
      return;
    }
    if (t.what == shape::bulk) {
      line("attempt(" + name(s.a) + ", [] {");
      line("  static const auto make = [](std::size_t i, lev::descriptor& d) {");
      line("    d = lev::pack(lev::detail::procedure_of<task_" + n + ">(), " +
           (needs_board(t) ? "board, " : "") + "static_cast<std::uint32_t>(i)" +
           bulk_arguments(s.a, false) + ");");
      line("  };");
      line("  " + ticket(s.a) + " = home->submit_bulk(" +
           (t.made_anywhere ? "lev::from_any_thread, " : "") + str(t.pieces) + ", make);");
      line("});");
      return;
    }
    if (s.by == entrance::within)
      line("// submit_within(), at most " + std::to_string(s.timeout_ns) + " ns");
    const std::string call =
        std::string(s.is_post ? "home->post" : ticket(s.a) + " = home->submit") + "<task_" + n +
        ">(";
    const std::string given = arguments(s.a);  // each behind a comma
    const std::string all = !is_bare(s) ? options(s) + given : without_comma(given);
    line("attempt(" + name(s.a) + ", [] { " + call + all + "); });");
  }
  static std::string without_comma(const std::string& arguments) {
    const std::size_t first = arguments.find_first_not_of(", ");
    return first == std::string::npos ? "" : arguments.substr(first);
  }
  void print_ordered(const step& s) {
    const std::string scope = "scope_" + str(s.b);
    line("if (!" + scope + ") " + scope + " = std::make_unique<lev::ordered>(*home);");
    line("attempt(" + name(s.a) + ", [] { " + scope + "->submit<task_" + str(s.a) + ">(" +
         options(s) + arguments(s.a) + "); });");
  }
  std::string how(const step& s) const {
    const std::string t = s.timeout_ns < 0 ? "lev::no_timeout" : std::to_string(s.timeout_ns);
    return t + ", lev::wait_policy::" + policy_text(s.policy);
  }
  void print_wait(const step& s) {
    if (s.what == verb::wait) {
      const bool is_plain = s.timeout_ns < 0 && s.policy == wait_policy::of_runtime;
      return line("wait(" + name(s.a) + ", " + ticket(s.a) + (is_plain ? "" : ", " + how(s)) +
                  ");");
    }
    const std::string count = str(s.list.size());
    line("{");
    std::string moved;
    for (const std::uint32_t t : s.list)
      moved += (moved.empty() ? "" : ", ") + ("std::move(" + ticket(t) + ")");
    line("  lev::ticket all[] = {" + moved + "};");
    if (s.what == verb::wait_any) line("  std::size_t index = 0;");
    line(std::string("  tell(\"") + verb_name(s.what) + "\", lev::" + verb_name(s.what) + "(all, " +
         count + (s.what == verb::wait_any ? ", &index, " : ", ") + how(s) + ").code);");
    for (std::size_t i = 0; i < s.list.size(); ++i)
      line("  " + ticket(s.list[i]) + " = std::move(all[" + str(i) + "]);");
    line("}");
  }
  void print_await(const step& s) {
    line("[]() -> fire_and_forget {");
    for (const std::uint32_t t : s.list) {
      step submit;
      submit.a = t;
      line("  try {");
      out_ += "  ";
      print_submit(submit);
      line("    if (" + ticket(t) + ") co_await lev::when_done(std::move(" + ticket(t) + "));");
      line("  } catch (const std::exception& e) {");
      line("    std::printf(\"task " + str(t) + ": %s\\n\", e.what());");
      line("  }");
    }
    line("}();");
  }
  void print_loop(const step& s) {
    line("attempt(\"parallel_for\", [] {");
    line("  home->parallel_for({0, " + str(s.list.size()) + "}, [](lev::range r) {");
    line("    for (std::uint64_t i = r.begin; i < r.end; ++i) {");
    for (std::size_t i = 0; i < s.list.size(); ++i) {
      if (s.list[i] != nobody)
        line("      if (i == " + str(i) + ") block_" + str(s.list[i]) + "();");
    }
    line("    }");
    line("  }, " + str(s.grain) + ");");
    line("});");
  }
  void print_filters(const step& s) {
    constexpr const char* names[] = {"fifo", "priority", "locality", "by_procedure"};
    std::string all;
    for (unsigned i = 0; i < 4; ++i) {
      if ((s.a >> i & 1) != 0)
        all += (all.empty() ? "" : ", ") + std::string("lev::filters::") + names[i] + "()";
    }
    if (all.empty()) return line("home->set_filters(nullptr, 0);");
    line("{");
    line("  const lev::filter chain[] = {" + all + "};");
    line("  home->set_filters(chain, sizeof chain / sizeof *chain);");
    line("}");
  }
  void print_step(const step& s) {
    const std::string t = ticket(s.a);
    const bool is_sim = p_.config.machine == place::sim;
    switch (s.what) {
      case verb::submit:
        return print_submit(s);
      case verb::wait:
      case verb::wait_any:
      case verb::wait_all:
        return print_wait(s);
      case verb::await_done:
        return line("if (" + t + ") while (!" + t +
                    ".done()) sched_yield();  // in a task: wait_until()");
      case verb::poll:
        return line(t + ".done();");
      case verb::cancel:
      case verb::end:
      case verb::release:
        return line(t + "." + verb_name(s.what) + "();");
      case verb::keep:
        return line("kept.push_back(std::move(" + t + "));");
      case verb::then:
        return line("if (" + t + ") " + t + ".then([](void*) { block_" + str(s.b) +
                    "(); }, nullptr);");
      case verb::await:
        return print_await(s);
      case verb::loop:
        return print_loop(s);
      case verb::share:
        return line("shown[" + str(s.b) + "] = " + t + ".id();");
      case verb::cancel_shown:
        return line("lev::detail::cancel(home->state(), shown[" + str(s.b) + "]);");
      case verb::end_shown:
        return line("lev::detail::end(home->state(), shown[" + str(s.b) + "]);");
      case verb::poll_shown:
        return line("lev::detail::peek(home->state(), shown[" + str(s.b) + "]);");
      case verb::set_flag:
        return line("flags[" + str(s.a) + "] = true;");
      case verb::await_flag:
        return line("lev::this_task().wait_until([] { return flags[" + str(s.a) + "].load(); });");
      case verb::spin_flag:
        return line(
            "while (!flags[" + str(s.a) + "]) " +
            (is_sim ? "lev::this_task().pass_time(100);" : "sched_yield();  // on a worker only"));
      case verb::filters:
        return print_filters(s);
      case verb::begin_phase:
        return line("home->begin_submit();");
      case verb::end_phase:
        return line("home->end_submit();");
      case verb::complete:
        return line("home->wait_for_completion(" + std::to_string(s.timeout_ns) + ");");
      case verb::start:
        return line("threads[" + str(s.a) + "] = std::thread(block_" + str(p_.hosts[s.a]) + ");");
      case verb::join:
        return line("if (threads[" + str(s.a) + "].joinable()) threads[" + str(s.a) + "].join();");
      case verb::yield:
        return line("lev::this_task().yield();");
      case verb::nap:
        return line(is_sim
                        ? "lev::this_task().pass_time(" + str(s.a * 1000) + ");  // in a task only"
                        : "usleep(" + str(s.a) + ");");
      case verb::spawn:
        return print_spawn(s);
      default:
        return print_aside(s);
    }
  }
  // Steps that would take more lines than they are worth are described in words.
  void print_aside(const step& s) {
    const char* const whose = s.b == 0 ? "another runtime" : "new threads";
    if (s.what == verb::strands) return print_strands(s);
    if (s.what == verb::toss) return line("throw tossed();");
    if (s.what == verb::aside)
      return line("usleep(500'000);  // until the other hosts have ended, join, or do this, too");
    if (s.what == verb::visit)
      line("// " + str(s.a) + " tasks of " + whose + " come and go here");
    else if (s.what == verb::cross)
      line("// a task of another runtime waits for one of this one, and so on, " +
           str(2 * s.a + 1) + " in all");
    else if (s.what == verb::shut)
      line("home->close(" + std::to_string(s.timeout_ns) + (s.a != 0 ? ", true);" : ");"));
    else if (s.what == verb::ordered)
      print_ordered(s);
    else if (s.what == verb::wait_ordered)
      line("if (scope_" + str(s.b) + ") tell(\"scope " + str(s.b) + "\", scope_" + str(s.b) +
           "->wait_outcome(" + std::to_string(s.timeout_ns) + ").code);");
    else if (s.what == verb::cancel_ordered)
      line("// lev_cancel() of the ticket of task " + str(s.a));
    else if (s.what == verb::look)
      line("// counters, clock and trace are read");
    else if (s.what == verb::misuse)
      line("// calls that must be refused: case " + str(s.a) + " of do_misuse()");
    else
      line("// fork(): the child tries to submit, closes its copy, and ends");
  }
  void print_strands(const step& s) {
    line("try {");
    line("  lev::interleave(" + str(s.a) + ", " + str(s.list.size()) +
         ", [](std::size_t i, auto& strand) {");
    line("    strand.yield();");
    for (std::size_t i = 0; i < s.list.size(); ++i) {
      if (s.list[i] != nobody) line("    if (i == " + str(i) + ") block_" + str(s.list[i]) + "();");
    }
    line("    strand.yield();");
    line("  });");
    line("} catch (const tossed&) {");
    line("}");
  }
  void print_spawn(const step& s) {
    line("{");
    line("  lev::task_context task = lev::this_task();");
    for (std::size_t i = 0; i < s.list.size(); ++i)
      line("  auto thread_" + str(i) + " = task.spawn([] { block_" + str(s.list[i]) + "(); });");

    line("}");
  }
  void define_block(std::uint32_t b) {
    out_ += "static void block_" + str(b) + "() {\n";
    for (const step& s : p_.blocks[b]) print_step(s);
    for (const step& s : p_.blocks[b]) {
      if (s.what == verb::ordered) line("scope_" + str(s.b) + ".reset();");
      if (s.what == verb::submit && !s.is_post && !is_ended(b, s.a))
        line(ticket(s.a) + ".release();");
    }
    out_ += "}\n";
  }
  // Waited for in this block, or handed on by it.
  bool is_ended(std::uint32_t b, std::uint32_t task) const {
    for (const step& s : p_.blocks[b]) {
      if (s.what == verb::wait && s.a == task && s.timeout_ns == no_timeout) return true;
      if (std::find(s.handed.begin(), s.handed.end(), task) != s.handed.end()) return true;
    }
    return false;
  }
  void define_main() {
    out_ += "\nint main() {\n";
    line("alarm(20);  // what is wrong may be that it hangs");
    line("lev::config c;");
    out_ += print_settings(p_.config);
    line("lev::runtime r(c);");
    line("home = &r;");
    line("for (lev::mutex_id& m : mutexes) r.make_mutex(&m);");
    line("block_" + str(p_.hosts[0]) + "();");
    line("for (std::thread& t : threads) {");
    line("  if (t.joinable()) t.join();");
    line("}");
    line("kept.clear();");
    if (!p_.close_cancels) line("tell(\"completion\", r.wait_for_completion().code);");
    std::string tickets;
    for (std::uint32_t t = 0; t < p_.tasks.size(); ++t)
      tickets += (t == 0 ? "&" : ", &") + ticket(t);
    const std::string release = "for (lev::ticket* t : {" + tickets + "}) t->release();";
    if (!p_.close_cancels) line(release);
    if (!p_.drops_runtime)
      line(std::string("tell(\"close\", r.close(") +
           (p_.close_ends      ? "0, true, true"
            : p_.close_cancels ? "lev::no_timeout, true"
                               : "lev::no_timeout") +
           "));");
    if (p_.close_cancels) line(release);
    out_ += "}\n";
  }

  const program& p_;
  std::string out_;
};

}  // namespace

std::string print(const program& p) {
  return printer(p).all();
}

}  // namespace lev::exercise
