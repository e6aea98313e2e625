// SPDX-License-Identifier: Apache-2.0
// Verb scripts: what two programs with one queue pair each do to each other, a line at a time, so
// that the same text on two RDMA stacks must end the same. A script begins with its queue pairs:
//   qp TYPE [KEY=VALUE | FLAG]...   rc, uc or ud; both sides make one and connect them
// and goes on with lines of the left side (L) or the right one (R), one after the other:
//   recv ID PIECES [key=NAME]       a receive; PIECES are OFFSET+LENGTH,... of the side's memory,
//   or - send|write|read|cas|fadd ID PIECES [to=OFFSET] [imm=N] [cmp=N swap=N | add=N] [key=NAME]
//       [rkey=NAME] [qpn=N] [qkey=N] [inline] [fence] [solicited] [quiet]   a request
//   sends N, recvs N                so many completions are waited for, as far as they can come
//   arrived PIECE                   memory that is to change is waited for
//   mr NAME PIECE RIGHTS            one more region (rights: letters of l, w, r, a, or -)
//   dereg NAME                      it goes
//   to STATE, state                 ibv_modify_qp; what ibv_query_qp says
//   word OFFSET N                   eight bytes of memory
// `bad` is the name of a key that nobody has; without a name the region of all memory is meant.
// What a script leaves open is flushed at its end, and told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw::interop {

struct Extent {
  uint32_t offset = 0;
  uint32_t length = 0;
};

// One line, taken apart.
class ScriptLine {
 public:
  // Throws Failure when it is no line of a script.
  static ScriptLine Parse(std::string_view text);

  char side = 0;  // 'L', 'R', or 0: both
  std::string verb;

  const std::string& word(size_t i) const;
  uint64_t number(size_t i) const;
  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  uint64_t value(const std::string& name, uint64_t otherwise = 0) const;
  std::vector<Extent> pieces(size_t i) const;

 private:
  std::vector<std::string> words_;             // behind the verb, without = and no flags
  std::map<std::string, std::string> values_;  // flags have an empty one
};

struct Script {
  const char* name;
  const char* text;
};

std::vector<ScriptLine> Lines(const Script& script);

// All of them, in the order in which they are run.
std::vector<Script> AllScripts();
std::vector<Script> SendScripts();
std::vector<Script> RemoteMemoryScripts();
std::vector<Script> ErrorScripts();
std::vector<Script> SharedReceiveScripts();
std::vector<Script> UnreliableScripts();

}  // namespace rocegw::interop
