// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/port_holders.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "gateway/base/foreign_text.h"

namespace rocegw {
namespace {

namespace fs = std::filesystem;

// Returns "" if the file cannot be read.
std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  if (const std::ifstream file(path); file) text << file.rdbuf();
  return text.str();
}

template <typename Number>
bool ReadNumber(std::string_view text, int base, Number& out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// Finds the process's sockets among the wanted ones.
void LookInto(const fs::path& process, const std::map<std::string, size_t>& wanted,
              const std::function<void(size_t)>& found) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unreadable;
    const std::string target = fs::read_symlink(at->path(), unreadable).string();
    const auto socket = wanted.find(target);
    if (!unreadable && socket != wanted.end()) found(socket->second);
  }
}

}  // namespace

std::vector<PortSocketLine> SocketsOfPort(std::string_view table, uint16_t port) {
  std::vector<PortSocketLine> sockets;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...
    std::istringstream words(line);
    std::vector<std::string> word;
    for (std::string one; words >> one;) word.push_back(std::move(one));
    constexpr size_t kLocal = 1;
    constexpr size_t kUid = 7;
    constexpr size_t kInode = 9;
    if (word.size() <= kInode) continue;
    const size_t colon = word[kLocal].rfind(':');
    uint16_t number = 0;
    PortSocketLine socket;
    if (colon == std::string::npos ||
        !ReadNumber(std::string_view(word[kLocal]).substr(colon + 1), 16, number) ||
        number != port || !ReadNumber(word[kUid], 10, socket.uid) ||
        !ReadNumber(word[kInode], 10, socket.inode)) {
      continue;
    }
    sockets.push_back(socket);
  }
  return sockets;
}

std::vector<PortHolder> FindPortHolders(const std::string& proc, const std::string& net,
                                        PortKind kind, uint16_t port) {
  const std::string table = net + (kind == PortKind::kUdp ? "/udp" : "/tcp");
  std::vector<PortHolder> holders;
  std::map<std::string, size_t> wanted;
  for (const char* const family : {"", "6"}) {
    for (const PortSocketLine& socket : SocketsOfPort(ReadFile(table + family), port)) {
      wanted["socket:[" + std::to_string(socket.inode) + "]"] = holders.size();
      holders.push_back({.own = false, .pid = 0, .command = {}, .uid = socket.uid});
    }
  }
  if (holders.empty()) return holders;
  LookInto(proc + "/self", wanted, [&](size_t at) { holders[at].own = true; });
  const auto strange = [](const PortHolder& holder) { return !holder.own; };
  // Searching all processes costs much more than searching this one.
  if (std::none_of(holders.begin(), holders.end(), strange)) return holders;
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    pid_t pid = 0;
    if (!ReadNumber(at->path().filename().string(), 10, pid)) continue;
    LookInto(at->path(), wanted, [&](size_t socket) {
      PortHolder& holder = holders[socket];
      if (holder.own || holder.pid != 0) return;
      const std::string command = ReadFile(at->path().string() + "/comm");
      holder.pid = pid;
      holder.command = command.substr(0, command.find('\n'));
    });
  }
  return holders;
}

std::string PortHolderText(PortKind kind, uint16_t port) {
  std::string unnamed;
  std::string own;
  for (const PortHolder& holder : FindPortHolders("/proc", "/proc/thread-self/net", kind, port)) {
    const std::string user = " of user " + std::to_string(holder.uid);
    if (holder.own) {
      own = "this process (socket" + user + ")";
    } else if (holder.pid != 0) {
      return "process " + std::to_string(holder.pid) + " (" + ForeignText(holder.command) + ")" +
             user;
    } else if (unnamed.empty()) {
      unnamed = "a program" + user;
    }
  }
  return unnamed.empty() ? own : unnamed;
}

}  // namespace rocegw
