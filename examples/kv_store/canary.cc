// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/canary.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

namespace kv {
namespace {

constexpr uint32_t kKeys = 32;
constexpr Milliseconds kPause(10);

volatile std::sig_atomic_t ended = 0;

// Returns the value with that number: each byte follows from key and number.
std::string ValueOf(const std::string& key, uint64_t number) {
  std::string text = key + " " + std::to_string(number) + " ";
  std::minstd_rand random(static_cast<uint32_t>(number) + 1);
  while (text.size() < 1000) text += static_cast<char>('a' + random() % 26);
  return text;
}

std::string LineOf(const std::string& key, uint64_t number) {
  const std::string text =
      key + " " + std::to_string(number) + " " + std::to_string(Checksum(ValueOf(key, number)));
  return text + " " + std::to_string(Checksum(text));
}

struct Acknowledged {
  uint64_t number = 0;
  uint32_t sum = 0;
};

// Returns false if a line but the last, which a kill may have cut, is damaged.
bool ReadJournal(const std::string& path, std::map<std::string, Acknowledged>& out) {
  std::ifstream file(path);
  bool damaged = false;
  for (std::string line; std::getline(file, line);) {
    if (damaged) return false;
    std::istringstream words(line);
    std::string key;
    Acknowledged value;
    damaged = !(words >> key >> value.number >> value.sum) || line != LineOf(key, value.number);
    if (!damaged) out[key] = value;
  }
  return true;
}

class Canary {
 public:
  Canary(Client& client, const std::string& journal, std::string status)
      : client_(client),
        journal_(journal, std::ios::app),
        prefix_(journal.substr(journal.rfind('/') + 1) + "-"),
        status_(std::move(status)) {}

  bool Start(const std::string& path) { return ReadJournal(path, last_) && journal_.good(); }

  void Write(const std::string& key) {
    const uint64_t number = last_[key].number + 1;
    const std::string value = ValueOf(key, number);
    if (!Ask({.op = Op::kPut, .key = key, .value = value}).has_value()) return;
    last_[key] = {number, Checksum(value)};
    journal_ << LineOf(key, number) << std::endl;
    ++writes_;
  }

  void Compare(const std::string& key) {
    const Acknowledged& expected = last_[key];
    const auto reply = Ask({.op = Op::kGet, .key = key});
    if (!reply.has_value()) return;
    ++reads_;
    if (expected.number == 0 ? reply->outcome != Outcome::kAbsent
                             : Checksum(reply->value) != expected.sum)
      problem_ = key + " is not as acknowledged with number " + std::to_string(expected.number) +
                 ": " + reply->value.substr(0, 40);
  }

  void Report() {
    {
      std::ofstream file(status_ + ".new");
      file << line() << "\n";
    }
    (void)std::rename((status_ + ".new").c_str(), status_.c_str());
  }

  std::string line() const {
    if (!problem_.empty()) return "broken: " + problem_;
    return "intact: " + std::to_string(writes_) + " writes, " + std::to_string(reads_) +
           " reads compared, longest " + std::to_string(longest_.count()) + " ms";
  }
  std::string KeyOf(uint64_t number) const { return prefix_ + std::to_string(number); }
  bool intact() const { return problem_.empty(); }

 private:
  std::optional<Message> Ask(const Message& request) {
    const auto began = Clock::now();
    auto reply = client_.Ask(request);
    longest_ = std::max(longest_, std::chrono::ceil<Milliseconds>(Clock::now() - began));
    if (!reply.has_value()) problem_ = "a request for " + request.key + " was not answered";
    return reply;
  }

  Client& client_;
  std::ofstream journal_;
  const std::string prefix_;  // of its keys: a canary with another journal has others
  const std::string status_;
  std::map<std::string, Acknowledged> last_;
  std::string problem_;
  uint64_t writes_ = 0;
  uint64_t reads_ = 0;
  Milliseconds longest_{0};
};

}  // namespace

int RunCanary(Client& client, const std::string& journal, const std::string& status) {
  (void)std::signal(SIGTERM, [](int) { ended = 1; });
  Canary canary(client, journal, status);
  if (!canary.Start(journal)) {
    std::fprintf(stderr, "kv_store: %s: damaged, or cannot be written\n", journal.c_str());
    return 1;
  }
  std::minstd_rand random(1);
  while (ended == 0 && canary.intact()) {
    canary.Write(canary.KeyOf(random() % kKeys));
    canary.Compare(canary.KeyOf(random() % kKeys));
    canary.Report();
    std::this_thread::sleep_for(kPause);
  }
  canary.Report();
  std::printf("%s\n", canary.line().c_str());
  return canary.intact() ? 0 : 1;
}

int CompareJournal(Client& client, const std::string& journal) {
  std::map<std::string, Acknowledged> last;
  if (!ReadJournal(journal, last) || last.empty()) {
    std::fprintf(stderr, "kv_store: %s: damaged or empty\n", journal.c_str());
    return 1;
  }
  for (const auto& [key, expected] : last) {
    const auto reply = client.Ask({.op = Op::kGet, .key = key});
    if (!reply.has_value() || Checksum(reply->value) != expected.sum) {
      std::printf("broken: %s is not as acknowledged with number %s\n", key.c_str(),
                  std::to_string(expected.number).c_str());
      return 1;
    }
  }
  std::printf("intact: %zu keys\n", last.size());
  return 0;
}

}  // namespace kv
