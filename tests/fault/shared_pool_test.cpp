// Several host processes at one pool of workers: what each gets, and what becomes of the others
// when one of them, a worker or the keeper dies.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fault/pool_hosts.hpp"
#include "machines/processes/berth.hpp"
#include "share/socket_name.hpp"

namespace lev::test {
namespace {

TEST_F(shared_pool, hosts_use_the_same_workers) {
  member a(at_pool()), b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  a.say("run 400 50");
  b.say("run 400 50");
  EXPECT_TRUE(parse(a.hear()).is_right);
  EXPECT_TRUE(parse(b.hear()).is_right);
  const answer of_a = parse(a.ask("meet 2"));
  EXPECT_EQ(of_a.workers.size(), 2u);
  EXPECT_EQ(parse(b.ask("meet 2")).workers, of_a.workers);
  EXPECT_EQ(a.ask("share 500"), "right");
  EXPECT_EQ(b.ask("share 500"), "right");
}

TEST_F(shared_pool, hosts_come_and_go) {
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  const answer before = parse(a.ask("meet 2"));
  const pid_t keeper = parent_of(*before.workers.begin());
  for (int i = 0; i < 5; ++i) {
    member b(at_pool());
    ASSERT_EQ(b.hear(), "there");
    EXPECT_TRUE(are_among(parse(b.ask("run 100 20")).workers, before.workers));
    EXPECT_EQ(b.ask("leave"), "left");
    EXPECT_EQ(b.ask("join"), "joined");
    EXPECT_TRUE(are_among(parse(b.ask("run 100 20")).workers, before.workers));
  }
  EXPECT_EQ(a.ask("leave"), "left");
  EXPECT_TRUE(ends(keeper)) << "a pool without hosts";
  for (const pid_t worker : before.workers) EXPECT_TRUE(ends(worker));
  EXPECT_EQ(a.ask("join"), "joined");
  EXPECT_TRUE(parse(a.ask("run 100 20")).is_right);
}

TEST_F(shared_pool, the_first_host_may_leave_first) {
  auto first = std::make_unique<member>(at_pool());
  ASSERT_EQ(first->hear(), "there");
  member second(at_pool());
  ASSERT_EQ(second.hear(), "there");
  first.reset();
  EXPECT_TRUE(parse(second.ask("run 200 20")).is_right);
  member third(at_pool());
  ASSERT_EQ(third.hear(), "there");
  EXPECT_TRUE(parse(third.ask("run 200 20")).is_right);
}

TEST_F(shared_pool, many_hosts_that_start_together_get_one_pool) {
  std::vector<std::unique_ptr<member>> all;
  for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<member>(at_pool()));
  for (auto& m : all) ASSERT_EQ(m->hear(), "there");
  for (auto& m : all) m->say("run 200 20");
  for (auto& m : all) EXPECT_TRUE(parse(m->hear()).is_right);
  const answer first = parse(all[0]->ask("meet 2"));
  EXPECT_EQ(first.workers.size(), 2u);
  for (auto& m : all) EXPECT_EQ(parse(m->ask("meet 2")).workers, first.workers);
}

TEST_F(shared_pool, a_host_killed_while_it_waits_frees_its_workers) {
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  const answer before = parse(a.ask("meet 2"));
  auto b = std::make_unique<member>(at_pool());
  ASSERT_EQ(b->hear(), "there");
  ASSERT_EQ(b->ask("hang 10"), "hangs");  // on both workers, and more behind them
  a.say("run 100 50");                    // behind those
  b->die();
  const answer after = parse(a.hear());
  EXPECT_TRUE(after.is_right);
  EXPECT_EQ(after.reruns, before.reruns) << "no task of this host was begun";
  EXPECT_FALSE(are_among(parse(a.ask("meet 2")).workers, before.workers)) << "one was killed";
}

TEST_F(shared_pool, no_task_of_a_dead_host_begins) {
  const std::string file = testing::TempDir() + name_;
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  const answer before = parse(a.ask("meet 2"));
  auto b = std::make_unique<member>(at_pool());
  ASSERT_EQ(b->hear(), "there");
  ASSERT_EQ(b->ask("write 200 " + file), "submitted");
  ASSERT_TRUE(comes([&] { return size_of(file) == 2; }));
  b->die();
  for (const pid_t worker : before.workers) EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(parse(a.ask("run 20 20000")).is_right);
  EXPECT_TRUE(parse(a.ask("meet 2")).is_right);
  EXPECT_EQ(size_of(file), 2) << "what was posted has not begun";
  unlink(file.c_str());
}

TEST_F(shared_pool, a_task_prints_where_its_host_does) {
  member a(at_pool("1"));
  ASSERT_EQ(a.hear(), "there");
  member b(at_pool("1"));
  ASSERT_EQ(b.hear(), "there");
  for (const std::string number : {"1", "2", "3"}) {
    EXPECT_EQ(a.ask("print " + number), number) << "the task ends when its text is written";
    EXPECT_EQ(a.hear(), "ok");
    EXPECT_EQ(b.ask("print 7"), "7");
    EXPECT_EQ(b.hear(), "ok");
    EXPECT_EQ(a.ask("print 8"), "8");
    EXPECT_EQ(a.hear(), "ok");
  }
}

const auto say_to_error = define("shared_pool.say_to_error", [] {
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, "a task", 6);
});

// A host that has closed its standard error may have a file of its own there.
TEST_F(shared_pool, a_task_does_not_print_into_what_its_host_keeps_to_itself) {
  const std::string path = "/tmp/leveret-" + name_;
  const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ASSERT_GE(kept, 0);
  close(STDERR_FILENO);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  config c;
  c.machine = "processes";
  c.processes.pool = name_.c_str();
  c.workers = 1;
  status code = status::pending;
  std::string why;
  try {
    runtime r(c);
    code = r.submit(say_to_error).wait_outcome().code;
  } catch (const error& e) {
    why = e.what();
  }
  dup2(kept, STDERR_FILENO);
  close(kept);
  EXPECT_EQ(file, STDERR_FILENO);
  EXPECT_EQ(code, status::ok) << why;
  EXPECT_EQ(size_of(path), 0);
  unlink(path.c_str());
}

TEST_F(shared_pool, who_reads_what_a_host_prints_sees_its_end) {
  member first(at_pool());
  ASSERT_EQ(first.hear(), "there");
  member second(at_pool());
  ASSERT_EQ(second.hear(), "there");
  EXPECT_TRUE(parse(first.ask("run 100 20")).is_right);
  first.die();
  EXPECT_EQ(first.hear(), " (ended)");
  EXPECT_TRUE(parse(second.ask("run 100 20")).is_right);
}

TEST_F(shared_pool, hosts_killed_while_they_submit_hurt_nobody) {
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  const int before = parse(a.ask("run 10 10")).reruns;
  int reruns = before;
  for (int i = 0; i < 20; ++i) {
    member b(at_pool());
    ASSERT_EQ(b.hear(), "there");
    ASSERT_EQ(b.ask("flood"), "floods");
    a.say("run 300 10");
    poll(nullptr, 0, i);
    b.die();
    const answer now = parse(a.hear());
    ASSERT_TRUE(now.is_right);
    reruns = now.reruns;
  }
  EXPECT_EQ(reruns, before) << "no worker dies in a task of another host";
}

TEST_F(shared_pool, the_first_host_killed_leaves_the_pool_to_the_others) {
  auto first = std::make_unique<member>(at_pool());
  ASSERT_EQ(first->hear(), "there");
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(first->ask("hang 4"), "hangs");
  first->die();
  EXPECT_TRUE(parse(a.ask("run 200 20")).is_right);
}

TEST_F(shared_pool, a_host_killed_while_it_starts_the_pool_leaves_the_name_free) {
  for (int i = 0; i < 20; ++i) {
    member first(at_pool());
    poll(nullptr, 0, i / 2);
    first.die();
    member a(at_pool());
    ASSERT_EQ(a.hear(), "there");
    EXPECT_TRUE(parse(a.ask("run 20 20")).is_right);
  }
}

TEST_F(shared_pool, a_stopped_host_hinders_nobody) {
  member a(at_pool());
  member b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  b.say("run 2000 50");
  kill(b.pid(), SIGSTOP);
  EXPECT_TRUE(parse(a.ask("run 500 20")).is_right);
  kill(b.pid(), SIGCONT);
  EXPECT_TRUE(parse(b.hear()).is_right);
}

TEST_F(shared_pool, a_worker_that_dies_is_replaced_for_all) {
  member a(at_pool());
  member b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  const answer before = parse(a.ask("meet 2"));
  a.say("run 2000 50");
  b.say("run 2000 50");
  for (const pid_t worker : before.workers) {
    poll(nullptr, 0, 10);
    kill(worker, SIGKILL);
  }
  const answer of_a = parse(a.hear());
  const answer of_b = parse(b.hear());
  EXPECT_TRUE(of_a.is_right && of_b.is_right);
  EXPECT_LE(of_a.reruns + of_b.reruns, 2) << "each of the two died in at most one task";
}

TEST_F(shared_pool, a_task_that_kills_its_worker_is_poison_to_its_own_host_only) {
  member a(at_pool());
  member b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  for (int i = 0; i < 5; ++i) {
    a.say("run 500 20");
    EXPECT_EQ(b.ask("crash"), "poison");
    const answer now = parse(a.hear());
    ASSERT_TRUE(now.is_right);
    EXPECT_EQ(now.reruns, 0);
  }
}

// Its last task ends, and its worker turns to a task of another host that has no end.
TEST_F(shared_pool, a_host_that_sleeps_is_told_before_its_worker_turns_to_another) {
  const std::string pipe = testing::TempDir() + name_;
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::vector<std::string> sleepy = at_pool("1");
  sleepy.push_back("sleepy");
  for (int i = 0; i < 3; ++i) {
    member a(sleepy);
    ASSERT_EQ(a.hear(), "there");
    member b(at_pool("1"));
    ASSERT_EQ(b.hear(), "there");
    a.say("read " + pipe);
    int to = -1;
    ASSERT_TRUE(comes([&] { return (to = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }))
        << "the task reads";
    ASSERT_EQ(b.ask("post_hang"), "posted");
    ASSERT_TRUE(comes([&] { return state_of(a.pid()) == 'S'; })) << "its host sleeps";
    EXPECT_EQ(write(to, "x", 1), 1);
    EXPECT_EQ(a.hear(), "ok");
    close(to);
    b.die();
  }
  unlink(pipe.c_str());
}

TEST_F(shared_pool, a_time_limit_ends_only_tasks_of_the_host_that_has_it) {
  member a(at_pool("2", "50000000"));  // 50 ms
  member b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  b.say("run 40 100000");
  EXPECT_EQ(a.ask("overrun"), "overran");
  const answer of_b = parse(b.hear());
  EXPECT_TRUE(of_b.is_right);
  EXPECT_EQ(of_b.reruns, 0);
}

TEST_F(shared_pool, a_task_that_is_ended_hurts_no_other_host) {
  member a(at_pool()), b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  b.say("run 3000 100");
  EXPECT_EQ(a.ask("end 30"), "cancelled");
  const answer of_b = parse(b.hear());
  EXPECT_TRUE(of_b.is_right && of_b.reruns == 0);
  EXPECT_EQ(b.ask("hang 2"), "hangs");
  EXPECT_EQ(a.ask("end_waiting"), "cancelled");
  b.die();  // its tasks do not end
}

TEST_F(shared_pool, a_keeper_that_dies_is_replaced) {
  member a(at_pool());
  member b(at_pool());
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  const answer before = parse(a.ask("run 100 50"));
  const pid_t keeper = parent_of(*before.workers.begin());
  a.say("run 2000 50");
  b.say("run 2000 50");
  poll(nullptr, 0, 10);
  kill(keeper, SIGKILL);
  EXPECT_TRUE(parse(a.hear()).is_right);
  EXPECT_TRUE(parse(b.hear()).is_right);
  const pid_t of_a = parent_of(*parse(a.ask("run 100 50")).workers.begin());
  const pid_t of_b = parent_of(*parse(b.ask("run 100 50")).workers.begin());
  EXPECT_EQ(of_a, of_b) << "one keeper, not two";
  EXPECT_NE(of_a, keeper);
}

TEST_F(shared_pool, hosts_may_have_different_numbers_of_workers) {
  member a(at_pool("1"));
  member b(at_pool("3"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  EXPECT_TRUE(parse(a.ask("run 300 200")).is_right);
  EXPECT_TRUE(parse(b.ask("run 300 200")).is_right);
  const answer of_a = parse(a.ask("meet 1"));
  const answer of_b = parse(b.ask("meet 3"));
  EXPECT_EQ(of_a.workers.size(), 1u);
  EXPECT_EQ(of_b.workers.size(), 3u);
  EXPECT_EQ(of_b.workers.count(*of_a.workers.begin()), 1u);
}

TEST_F(shared_pool, a_host_with_other_limits_is_refused_and_told_why) {
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  std::vector<std::string> other = at_pool();
  other.push_back("limited");
  member b(other);
  const std::string why = b.hear();
  EXPECT_NE(why.find("worker_bytes_max"), std::string::npos) << why;
  EXPECT_TRUE(parse(a.ask("run 100 20")).is_right);
}

TEST_F(shared_pool, a_host_of_another_program_is_refused_and_told_why) {
  member a(at_pool());
  ASSERT_EQ(a.hear(), "there");
  config c;
  c.machine = "processes";
  c.processes.pool = name_.c_str();
  try {
    const runtime r(c);
    ADD_FAILURE() << "its functions are elsewhere";
  } catch (const error& why) {
    EXPECT_EQ(why.code(), status::bad_config);
    EXPECT_NE(std::string(why.what()).find("another program"), std::string::npos) << why.what();
  }
  EXPECT_TRUE(parse(a.ask("run 100 20")).is_right);
}

// The keeper has the limit of its first host. One more number each time, so that it lacks one for
// each of the 7 that a host costs it.
TEST_F(shared_pool, a_keeper_that_lacks_file_numbers_says_so) {
  for (int files = 40; files < 47; ++files) {
    std::vector<std::string> few = at_pool("1");
    few.push_back("files_" + std::to_string(files));
    std::vector<std::unique_ptr<member>> all;
    std::string last = "there";
    while (last == "there" && all.size() < 64) {
      all.push_back(std::make_unique<member>(few));
      last = all.back()->hear();
    }
    EXPECT_NE(last.find("ulimit -n"), std::string::npos) << files << ' ' << last;
  }
}

// Also if it was faster with its first message than the keeper with its answer.
TEST_F(shared_pool, a_host_for_which_there_is_no_room_is_told_so) {
  std::vector<std::unique_ptr<member>> all;
  for (int i = 0; i < 64; ++i) all.push_back(std::make_unique<member>(at_pool("1")));
  for (auto& m : all) ASSERT_EQ(m->hear(), "there");
  const pid_t keeper = parent_of(*parse(all[0]->ask("run 1 1")).workers.begin());
  kill(keeper, SIGSTOP);
  const socket_name pool("pool", name_.c_str());
  const int visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool is_there = connect(visitor, pool.address(), pool.bytes()) == 0 &&
                        processes::send_message(visitor, processes::introduction{});
  kill(keeper, SIGCONT);
  ASSERT_TRUE(is_there);
  pollfd answer{visitor, POLLIN, 0};
  EXPECT_EQ(poll(&answer, 1, answer_ms_max), 1);
  processes::report r;
  EXPECT_EQ(processes::receive_message(visitor, r, {}), static_cast<ssize_t>(sizeof r));
  EXPECT_EQ(r.what, std::uint32_t{processes::report::unavailable});
  EXPECT_STREQ(r.text, "the pool has its 64 hosts");
  close(visitor);
}

// What a keeper answers a host that introduces itself so.
std::string answer_to(const socket_name& pool, const processes::introduction& about,
                      std::span<const int> files) {
  const int visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connect(visitor, pool.address(), pool.bytes()) != 0) return "nobody is there";
  processes::send_message(visitor, about, files);  // the answer may have come before
  pollfd answer{visitor, POLLIN, 0};
  poll(&answer, 1, answer_ms_max);
  processes::report r;
  int pages[2];
  const bool is_there = processes::receive_message(visitor, r, pages) == sizeof r;
  close(visitor);
  return is_there ? r.text : "no answer";
}

TEST_F(shared_pool, a_host_that_cannot_be_a_member_is_told_why) {
  const socket_name pool("pool", name_.c_str());
  const int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(door, pool.address(), pool.bytes()), 0);
  ASSERT_EQ(listen(door, 1), 0);
  member a(at_pool("1"));
  const int first = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
  pollfd said{first, POLLIN, 0};
  EXPECT_EQ(poll(&said, 1, answer_ms_max), 1);
  processes::introduction of_a;
  int files[processes::file_of::member_count];
  EXPECT_EQ(processes::receive_message(first, of_a, files), static_cast<ssize_t>(sizeof of_a));
  close(door);
  close(first);
  ASSERT_EQ(a.hear(), "there") << "it starts the pool itself";
  EXPECT_EQ(answer_to(pool, of_a, files),
            "another host of the pool has its shared memory at the same place");
  EXPECT_EQ(answer_to(pool, of_a, {}),
            "the keeper of the workers had no number free for the host's files");
  processes::introduction other = of_a;
  ++other.version;
  EXPECT_EQ(answer_to(pool, other, files),
            "the first message is not one of this version of Leveret");
  if (geteuid() == 0) {  // only root becomes another user
    const pid_t stranger = fork();
    if (stranger == 0) {
      const bool is_stranger = setuid(65534) == 0;
      _exit(is_stranger && answer_to(pool, of_a, files) == "the pool belongs to another user" ? 0
                                                                                              : 1);
    }
    int how = -1;
    EXPECT_EQ(waitpid(stranger, &how, 0), stranger);
    EXPECT_EQ(how, 0);
  }
  for (const int f : files) close(f);
  EXPECT_TRUE(parse(a.ask("run 20 5")).is_right);
}

TEST_F(shared_pool, a_pool_has_room_for_64_hosts) {
  std::vector<std::unique_ptr<member>> all;
  for (int i = 0; i < 64; ++i) all.push_back(std::make_unique<member>(at_pool("1")));
  for (auto& m : all) ASSERT_EQ(m->hear(), "there");
  member one_more(at_pool("1"));
  const std::string why = one_more.hear();
  EXPECT_NE(why.find("64 hosts"), std::string::npos) << why;
  for (auto& m : all) m->say("run 20 5");
  for (auto& m : all) EXPECT_TRUE(parse(m->hear()).is_right);
  all.pop_back();
  member next(at_pool("1"));
  EXPECT_EQ(next.hear(), "there");
}

}  // namespace
}  // namespace lev::test
