// SPDX-License-Identifier: Apache-2.0
// connectivity test: checks if programs behind gateways of the fleet reach each other.
#include <condition_variable>
#include <iostream>
#include <mutex>

#include "controlplane/cli/commands/connectivity_plan.h"
#include "controlplane/cli/commands/in_parallel.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/connectivity_view.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {
namespace {

using admin::v1::TestConnectivityRequest;
using admin::v1::TestConnectivityResponse;

struct ConnectivityQuery {
  PairsWanted pairs;
  std::string size;
  std::string count;
  bool bandwidth = false;
  bool network = false;
  std::string bytes;
  std::string pool;
};

CallResult ReadRequest(const ConnectivityQuery& query, TestConnectivityRequest& request) {
  constexpr uint64_t kMostBytes = 65536;
  constexpr uint64_t kMostRoundTrips = 100'000;
  constexpr uint64_t kMostBulk = 4ULL << 30;
  uint64_t size = 0;
  uint64_t count = 0;
  uint64_t bulk = query.bandwidth ? 64ULL << 20 : 0;
  if (auto r = ReadAmount("--size", query.size, Unit::kBytes, kMostBytes, size); !r.ok()) return r;
  if (auto r = ReadAmount("--count", query.count, Unit::kCount, kMostRoundTrips, count); !r.ok())
    return r;
  if (auto r = ReadAmount("--bytes", query.bytes, Unit::kBytes, kMostBulk, bulk); !r.ok()) return r;
  request.set_message_bytes(static_cast<uint32_t>(size));
  request.set_round_trips(static_cast<uint32_t>(count));
  request.set_bulk_bytes(bulk);
  request.set_plain(query.network);
  if (query.pool.empty()) return {};
  std::string pool;
  if (auto r = FullName(*FindKind("pools"), query.pool, {}, pool); !r.ok()) return r;
  request.set_pool(pool);
  return {};
}

CallResult FullNames(std::vector<std::string>& names) {
  for (std::string& name : names) {
    const std::string text = name;
    if (auto r = FullName(*FindKind("gateways"), text, {}, name); !r.ok()) return r;
  }
  return {};
}

CallResult ReadPairs(Program& program, PairsWanted wanted, std::vector<GatewayPair>& pairs) {
  for (auto* names : {&wanted.among, &wanted.from, &wanted.to}) {
    if (auto r = FullNames(*names); !r.ok()) return r;
  }
  ObjectList gateways;
  if (auto r = program.objects().List(*FindKind("gateways"), {}, {}, gateways); !r.ok()) return r;
  std::vector<std::string> fleet;
  for (const MessagePtr& gateway : gateways.objects) fleet.push_back(TextOf(*gateway, "name"));
  return PlanPairs(wanted, fleet, pairs);
}

// Returns true for an error that would affect all pairs and ends the command; other errors belong
// to the pair's row.
bool IsOfAll(const CallResult& result) {
  return result.code == kDenied || result.code == kUsage || result.code == kUnavailable ||
         result.reason.empty();
}

class Tests {
 public:
  Tests(Program& program, TestConnectivityRequest request, std::vector<GatewayPair> pairs)
      : program_(program),
        request_(std::move(request)),
        schedule_(std::move(pairs)),
        results_(schedule_.size()) {}

  CallResult Run() {
    // Only half as many pairs as gateways are disjoint.
    OnThreads(std::min(schedule_.size(), kMostAtATime), [this] { Work(); });
    return failure_;
  }
  const std::vector<TestConnectivityResponse>& results() const { return results_; }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (!schedule_.Exhausted() && failure_.ok()) {
      const std::optional<size_t> pair = schedule_.Begin();
      if (!pair.has_value()) {
        ended_.wait(lock);
        continue;
      }
      line_.Show("testing " + ShortName(schedule_.pair(*pair).first) + " to " +
                 ShortName(schedule_.pair(*pair).second));
      lock.unlock();
      const CallResult result = Test(*pair);
      lock.lock();
      schedule_.End(*pair);
      if (!result.ok() && failure_.ok()) failure_ = result;
      ended_.notify_all();
    }
  }
  CallResult Test(size_t pair) {
    TestConnectivityRequest request = request_;
    std::tie(*request.mutable_from(), *request.mutable_to()) = schedule_.pair(pair);
    TestConnectivityResponse& response = results_[pair];
    const CallResult result =
        program_.rpc().Call("/rocegw.admin.v1.Gateways/TestConnectivity", request, response);
    if (result.ok() || IsOfAll(result)) return result;
    response.set_from(request.from());
    response.set_to(request.to());
    response.set_fault(types::v1::PROBE_FAILED);
    response.set_message(result.text);
    return {};
  }

  Program& program_;
  const TestConnectivityRequest request_;
  std::mutex mutex_;
  std::condition_variable ended_;
  PairSchedule schedule_;
  std::vector<TestConnectivityResponse> results_;  // each written by the thread of its pair
  CallResult failure_;
  Progress line_;
};

int Print(const Program& program, const std::vector<TestConnectivityResponse>& tests) {
  const std::string& format = program.options.format;
  Messages all;
  for (const TestConnectivityResponse& test : tests) all.push_back(&test);
  if (format == "json") {
    std::cout << ObjectsJson("tests", all);
  } else if (format == "yaml") {
    std::cout << ObjectsYaml(all);
  } else if (format == "name") {
    for (const TestConnectivityResponse& test : tests) {
      if (!test.has_connectivity()) std::cout << test.from() << " " << test.to() << "\n";
    }
  } else {
    std::cout << ConnectivityView(tests, program.wide());
  }
  return CodeOf(tests);
}

int TestPairs(Program& program, const ConnectivityQuery& query) {
  TestConnectivityRequest request;
  if (auto result = ReadRequest(query, request); !result.ok()) return Fail(result);
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  std::vector<GatewayPair> pairs;
  if (auto result = ReadPairs(program, query.pairs, pairs); !result.ok()) return Fail(result);
  std::vector<TestConnectivityResponse> found;
  {
    Tests tests(program, std::move(request), std::move(pairs));
    if (auto result = tests.Run(); !result.ok()) return Fail(result);
    found = tests.results();
  }
  return Print(program, found);
}

}  // namespace

void AddConnectivityCommands(CLI::App& app, Program& program) {
  CLI::App* const connectivity =
      program.Add(app, "connectivity", "whether programs reach each other: test",
                  "  rocegwctl connectivity test host-a host-b", nullptr);
  const auto query = std::make_shared<ConnectivityQuery>();
  CLI::App* const test =
      program.Add(*connectivity, "test", "programs on the hosts talk through their gateways",
                  "  rocegwctl connectivity test host-a host-b host-c     each to each other\n"
                  "  rocegwctl connectivity test --all --bandwidth\n"
                  "  rocegwctl connectivity test --from host-a            to all others\n"
                  "  rocegwctl connectivity test --from host-a --to host-b -o json\n"
                  "The agents of both hosts start rocegw-probe, which attaches to its gateway as\n"
                  "any program, connects by rdma_cm, sends messages there and back, with\n"
                  "--bandwidth then as much as the way takes, and compares every byte. The row of\n"
                  "a pair has the time there and back and whether its data went over a channel or\n"
                  "plain RoCEv2; of one that failed the reason and a remedy. --timeout (10s, at\n"
                  "most 60s) is for each pair; gateways are in one test at a time. Needs OPERATOR\n"
                  "or ADMIN. Exit status: 0 all reach each other, 10 some do not.",
                  [&program, query] { return TestPairs(program, *query); });
  test->add_option("GATEWAY", query->pairs.among, "each of them to each other");
  test->add_flag("--all", query->pairs.all, "all of the fleet");
  test->add_option("--from", query->pairs.from, "that connects; alone: to all others")
      ->type_name("NAME")
      ->allow_extra_args(false);
  test->add_option("--to", query->pairs.to, "that is connected to; alone: from all others")
      ->type_name("NAME")
      ->allow_extra_args(false);
  test->add_option("--size", query->size, "of a message (64), at most 64KiB")->type_name("BYTES");
  test->add_option("--count", query->count, "messages there and back (1000)")->type_name("N");
  test->add_flag("--bandwidth", query->bandwidth, "then send in bulk");
  test->add_flag("--network", query->network,
                 "also the network beside RDMA: loss, order, DSCP, ECN, TCP, clocks");
  test->add_option("--bytes", query->bytes, "so much of it (64MiB), at most 4GiB")
      ->type_name("BYTES");
  test->add_option("-p,--pool", query->pool, "attach to this one (default/default)")
      ->type_name("POOL");
}

}  // namespace rocegw::cli
