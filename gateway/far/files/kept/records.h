// SPDX-License-Identifier: Apache-2.0
// Records that describe a tree of files: nodes, names, sizes and blocks. A journal has them in the
// order in which they came; a later record of the same thing replaces an earlier one. Pure.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace rocegw::far {

// Attributes of a node, and what depends on its type.
struct NodeState {
  mode_t mode = 0;  // type and permissions
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t device = 0;  // device nodes have it
  uint32_t links = 0;
  timespec accessed{}, changed{};
  timespec modified{};  // not for regular files: their data knows it
  uint64_t parent = 0;  // directories have it
  std::string target;   // symbolic links have it

  bool IsDirectory() const { return S_ISDIR(mode); }
};

using NodeNames = std::map<std::string, uint64_t, std::less<>>;

// Block of the space that holds a stretch of a file, and which of its pages were written.
struct BlockState {
  uint32_t block = 0;
  uint16_t written = 0;
};

class RecordWriter {
 public:
  void Node(uint64_t number, const NodeState& state);
  void NoNode(uint64_t number);
  // `number` 0: the directory has no such name.
  void Name(uint64_t directory, std::string_view name, uint64_t number);
  void Data(uint64_t number, uint64_t size, timespec modified);
  // `state` nullptr: the file has no block there.
  void Block(uint64_t number, uint64_t index, const BlockState* state);

  bool empty() const { return text_.empty(); }
  std::string Take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

// Tree of files that records describe.
struct KeptFiles {
  struct Node {
    NodeState state;
    NodeNames names;
  };
  struct Data {
    uint64_t size = 0;
    timespec modified{};
    std::map<uint64_t, BlockState> blocks;  // by offset in the file / Blocks::kBytes
  };
  std::map<uint64_t, Node> nodes;  // by number
  std::map<uint64_t, Data> data;   // by number of the node

  // Returns false when the text holds something else than records.
  bool Apply(std::string_view records);
  // Drops files that were unlinked while a program had them open. Returns false when the records do
  // not describe a tree: its root is missing, or a name leads nowhere.
  bool Finish(uint64_t root);
};

}  // namespace rocegw::far
