// SPDX-License-Identifier: Apache-2.0
// The SQLite store beside the disk it writes to, in turns: how often fdatasync returns (4 KiB
// written in place, and appended), what one writer gets acknowledged, what 64 get. A transaction
// puts what an API write does: an object, its audit record, its request's answer. And how long a
// start takes with 100,000 objects after a SIGKILL, with all of them still in the log. Files are
// made below TMPDIR, else /tmp: it should lie on the disk that is asked about.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/store/sqlite/sqlite_store.h"
#include "tests/bench/disk_sync.h"
#include "tests/bench/measurement.h"

namespace rocegw::bench {
namespace {

constexpr double kTurn = 1.0;  // seconds
constexpr int kObjects = 100000;
constexpr int kWriters = 64;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "bench_store: %s\n", what.c_str());
  std::exit(1);
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "bench-store-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) Die("cannot make " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

store::Transaction ApiWrite(int writer, int n) {
  const std::string object =
      "tenants/t" + std::to_string((writer * 977 + n) % 10000) + "/pools/default";
  const std::string id = std::to_string(writer) + "-" + std::to_string(n);
  return {{},
          {store::Operation::Put(object, std::string(600, 'o')),
           store::Operation::Put("audit/" + id, std::string(300, 'a')),
           store::Operation::Put("request/" + id, std::string(200, 'r'))},
          {}};
}

Acknowledged StoreWrites(store::Store& store, int writers, int* next) {
  std::vector<std::vector<double>> times(static_cast<size_t>(writers));
  std::vector<std::thread> threads;
  threads.reserve(times.size());
  const double begin = Seconds();
  const int first = *next;
  std::atomic<int> highest = first;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      double now = Seconds();
      int n = first;
      for (; now - begin < kTurn; ++n) {
        const auto result = store.Txn(ApiWrite(writer, n));
        if (!result.ok()) Die(result.status().text());
        const double then = std::exchange(now, Seconds());
        times[static_cast<size_t>(writer)].push_back(now - then);
      }
      int seen = highest;
      while (seen < n && !highest.compare_exchange_weak(seen, n)) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = Seconds() - begin;
  *next = highest;
  std::vector<double> all;
  for (const auto& some : times) all.insert(all.end(), some.begin(), some.end());
  return Summarise(std::move(all), seconds);
}

struct Start {
  double open = 0;  // seconds
  double list = 0;
  double log = 0;  // MiB
};

Start StartWithManyObjects(const Folder& folder) {
  store::SqliteFileOptions options{.path = folder.File("many.db"), .vfs = {}};
  const pid_t child = ::fork();
  if (child == 0) {
    options.checkpoint_pages = 0;  // never
    auto store = store::OpenSqliteStore(options);
    if (!store.ok()) ::_exit(1);
    for (int i = 0; i < kObjects;) {
      store::Transaction transaction;
      for (int k = 0; k < 100; ++k, ++i) {
        transaction.then.push_back(
            store::Operation::Put("objects/" + std::to_string(i), std::string(600, 'o')));
      }
      if (!(*store)->Txn(std::move(transaction)).ok()) ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
    Die("cannot make the store with many objects");
  }
  Start start;
  start.log = static_cast<double>(std::filesystem::file_size(options.path + "-wal")) / (1 << 20);
  const double begin = Seconds();
  auto store = store::OpenSqliteStore(options);
  if (!store.ok()) Die(store.status().text());
  const double opened = Seconds();
  const auto list = (*store)->Range({store::KeyRange::All()});
  if (!list.ok() || list.value().entries.size() != kObjects) Die("objects are missing");
  start.open = opened - begin;
  start.list = Seconds() - opened;
  return start;
}

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv, 5);
  std::printf("%s\n", Machine().c_str());
  const Folder folder;
  const Start start = StartWithManyObjects(folder);
  auto opened = store::OpenSqliteStore({.path = folder.File("store.db"), .vfs = {}});
  if (!opened.ok()) Die(opened.status().text());
  store::Store& store = **opened;

  const char* const names[] = {"4 KiB in place", "4 KiB appended", "24 KiB in place", "one writer",
                               "64 writers"};
  std::vector<Acknowledged> results[5];
  int next = 0;
  for (int round = 0; round < arguments.rounds; ++round) {
    results[0].push_back(SyncRate(folder.File("raw"), 4096, true, kTurn));
    results[1].push_back(SyncRate(folder.File("raw"), 4096, false, kTurn));
    results[2].push_back(SyncRate(folder.File("raw"), 6 * 4096, true, kTurn));
    results[3].push_back(StoreWrites(store, 1, &next));
    results[4].push_back(StoreWrites(store, kWriters, &next));
  }
  const auto median = [&](size_t row, double Acknowledged::*field) {
    std::vector<double> values;
    for (const Acknowledged& result : results[row]) values.push_back(result.*field);
    return Median(std::move(values));
  };
  // Within a round: the disk is not the same from one second to the next.
  const auto ratio = [&](size_t row, size_t to) {
    std::vector<double> values;
    for (size_t i = 0; i < results[row].size(); ++i) {
      values.push_back(results[row][i].rate / results[to][i].rate);
    }
    return Median(std::move(values));
  };
  std::printf("%-22s %10s %9s %9s %14s\n", "medians of turns", "per s", "p50 ms", "p99 ms",
              "of 4 KiB");
  std::string json = "{";
  for (size_t row = 0; row < 5; ++row) {
    const double rate = median(row, &Acknowledged::rate);
    std::printf("%-22s %10.0f %9.3f %9.3f %13.2fx\n", names[row], rate,
                median(row, &Acknowledged::p50), median(row, &Acknowledged::p99), ratio(row, 0));
    json += "\"" + std::string(names[row]) + "\": " + std::to_string(rate) + ", ";
  }
  std::printf("64 writers: %.1f times one writer\n", ratio(4, 3));
  std::printf(
      "start with %d objects after SIGKILL, %.0f MiB of log: open %.2f s, list all %.2f s\n",
      kObjects, start.log, start.open, start.list);
  json += "\"one of in place\": " + std::to_string(ratio(3, 0)) +
          ", \"64 of one\": " + std::to_string(ratio(4, 3)) +
          ", \"open\": " + std::to_string(start.open) +
          ", \"list\": " + std::to_string(start.list) + "}";
  WriteJson(arguments, json);
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
