// SPDX-License-Identifier: Apache-2.0
// A key-value store of three replicas over TCP or RDMA, as something to migrate: its configuration
// says which transport a replica offers, and it says which one it uses. Plain verbs; nothing in it
// knows of gateways.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "examples/kv_store/canary.h"
#include "examples/kv_store/client.h"
#include "examples/kv_store/replica.h"
#include "examples/kv_store/settings.h"

namespace kv {
namespace {

constexpr const char* kUsage =
    "usage: kv_store serve CONFIG            a replica; reads CONFIG's transport again when the "
    "file changes\n"
    "       kv_store get REPLICAS KEY        REPLICAS: ADDRESS:PORT of one group, with commas "
    "between them\n"
    "       kv_store put REPLICAS KEY VALUE\n"
    "       kv_store status REPLICA\n"
    "       kv_store check REPLICA auto|strict|tcp|rdma COUNT\n"
    "                                        writes and reads at this replica alone, over the "
    "transport that it\n"
    "                                        offers (strict: without fallback) or the named one\n"
    "       kv_store canary REPLICAS JOURNAL STATUS\n"
    "       kv_store compare REPLICAS JOURNAL\n";
constexpr Milliseconds kLookAtConfig(200);

int Fail(const std::string& text) {
  std::fprintf(stderr, "kv_store: %s\n", text.c_str());
  return 1;
}

int ServeReplica(const std::string& path) {
  std::string problem;
  const Settings settings = ReadSettings(path, problem);
  if (!problem.empty()) return Fail(problem);
  // Lives as long as the process, as its threads do.
  auto* const replica = new Replica(settings);
  problem = replica->Open();
  if (!problem.empty()) return Fail(problem);
  replica->Start();
  while (true) {
    std::this_thread::sleep_for(kLookAtConfig);
    problem.clear();
    const Settings now = ReadSettings(path, problem);
    // A file that is not understood changes nothing.
    if (problem.empty()) replica->Offer(now.transport);
  }
}

int PrintReply(const std::optional<Message>& reply) {
  if (!reply.has_value()) return Fail("no majority of the replicas answers");
  if (reply->outcome == Outcome::kAbsent) return Fail("there is no such key");
  if (!reply->value.empty()) std::printf("%s\n", reply->value.c_str());
  return 0;
}

int PrintStatus(const Place& place) {
  // Connected by hand: a greeting would follow what the replica offers.
  auto link = ConnectTcp(place.address, place.port, kConnectLimit);
  if (link == nullptr) return Fail("the replica does not answer");
  Session session(std::move(link), false);
  Message reply;
  if (!session.Ask({.op = Op::kStatus}, reply)) return Fail("the replica does not answer");
  std::fputs(reply.value.c_str(), stdout);
  return 0;
}

int Check(const Place& place, const std::string& over, int count) {
  static const std::map<std::string, std::optional<Transport>> kWanted = {
      {"auto", std::nullopt},
      {"strict", std::nullopt},
      {"tcp", Transport::kTcp},
      {"rdma", Transport::kRdma}};
  const auto wanted = kWanted.find(over);
  if (wanted == kWanted.end()) return Fail(kUsage);
  auto session = Session::Connect(place, wanted->second, over == "auto");
  if (session == nullptr) return Fail("nothing connects");
  for (int i = 1; i <= count; ++i) {
    const Message read = {.op = Op::kRead, .key = "check"};
    const std::string value(4000, static_cast<char>('a' + i % 26));
    Message reply;
    if (!session->Ask(read, reply)) return Fail("the replica does not answer");
    const Version version = MakeVersion(CountOf(reply.version) + 1, 0);
    if (!session->Ask({.op = Op::kWrite, .version = version, .key = "check", .value = value},
                      reply) ||
        reply.outcome != Outcome::kDone || !session->Ask(read, reply))
      return Fail("the replica does not store");
    // Another check may have written meanwhile.
    if (reply.version < version || (reply.version == version && reply.value != value))
      return Fail("another value came back");
  }
  std::printf("%s%s\n", WordOf(session->transport()), session->fell_back() ? " fell-back" : "");
  return 0;
}

int Run(const std::vector<std::string>& words) {
  const auto is = [&](const char* verb, size_t count) {
    return words.size() == count + 1 && words[0] == verb;
  };
  if (is("serve", 1)) return ServeReplica(words[1]);
  if (words.size() < 2) return Fail(kUsage);
  const std::vector<Place> places = ReadPlaces(words[1]);
  if (places.empty()) return Fail(kUsage);
  if (is("status", 1)) return PrintStatus(places[0]);
  if (is("check", 3)) return Check(places[0], words[2], std::atoi(words[3].c_str()));
  Client client(places, true);
  if (is("get", 2)) return PrintReply(client.Ask({.op = Op::kGet, .key = words[2]}));
  if (is("put", 3))
    return PrintReply(client.Ask({.op = Op::kPut, .key = words[2], .value = words[3]}));
  if (is("canary", 3)) return RunCanary(client, words[2], words[3]);
  if (is("compare", 2)) return CompareJournal(client, words[2]);
  return Fail(kUsage);
}

}  // namespace
}  // namespace kv

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return kv::Run({words + 1, words + count});
}
