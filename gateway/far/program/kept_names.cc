// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/kept_names.h"

#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "gateway/far/files/blocks.h"

namespace rocegw::far {
namespace {

constexpr char kNamesEnding[] = ".names";       // the journal's, beside a disk copy
constexpr char kPlacementEnding[] = ".donors";  // the placement's, beside a journal

// Ranges of the space that the files have data in.
std::vector<CopyFile::Range> DataOf(const KeptFiles& files, uint64_t size) {
  std::vector<CopyFile::Range> data;
  for (const auto& [number, file] : files.data) {
    for (const auto& [index, state] : file.blocks) {
      const uint64_t first = state.block * Blocks::kBytes;
      if (first + Blocks::kBytes > size) continue;  // the file is refused later
      for (uint32_t page = 0; page < Blocks::kPages; page++) {
        if ((state.written >> page & 1) == 0) continue;
        const uint64_t begin = first + page * Blocks::kPageBytes;
        data.push_back({begin, begin + Blocks::kPageBytes});
      }
    }
  }
  return data;
}

StatusOr<KeptSpace> OpenPlacement(const std::string& path, uint64_t size, bool* exists) {
  std::string text;
  auto opened = Journal::Open(path, size, &text, exists, Journal::kPlacement);
  if (!opened.ok()) return opened.status();
  KeptSpace space;
  if (*exists) space.placement = DecodePlacement(text);
  if (*exists && !space.placement) return Status(EINVAL, path + ": a damaged file");
  const std::shared_ptr<Journal> journal = std::move(opened.value());
  space.save = [journal](const std::string& placement) { return journal->Replace(placement); };
  return space;
}

}  // namespace

StatusOr<KeptNames> OpenKeptNames(const std::string& names, const std::string& disk_copy,
                                  uint64_t size) {
  if (names.empty() && disk_copy.empty()) {
    return Status(EINVAL, "--keep needs --names, or --disk-copy, which then holds the files");
  }
  const std::string path = names.empty() ? disk_copy + kNamesEnding : names;
  KeptNames kept;
  std::string records;
  bool exists = false;
  auto journal = Journal::Open(path, size, &records, &exists);
  if (!journal.ok()) return journal.status();
  kept.journal = std::move(journal.value());
  if (!kept.files.Apply(records)) return Status(EINVAL, path + ": a damaged file");
  const std::string holder = disk_copy.empty() ? path + kPlacementEnding : disk_copy;
  bool has_holder = access(holder.c_str(), F_OK) == 0;
  if (disk_copy.empty()) {
    auto space = OpenPlacement(holder, size, &has_holder);
    if (!space.ok()) return space.status();
    kept.space = std::move(space.value());
    kept.space.data = DataOf(kept.files, size);
  }
  if (has_holder && !exists) {
    return Status(EEXIST, holder + ": " + path +
                              " is missing, which has the names of its files; remove the former to "
                              "begin anew");
  }
  bool has_data = false;
  for (const auto& [number, file] : kept.files.data) has_data = has_data || !file.blocks.empty();
  if (!has_holder && has_data) {
    return Status(ENOENT, holder + ": is missing, and " + path +
                              " names files in it; remove the latter to begin anew");
  }
  // The journal is made before the file that holds the data, which is refused without names.
  if (!exists) {
    if (Status status = kept.journal->Replace(""); !status.ok()) return status;
  }
  return kept;
}

}  // namespace rocegw::far
