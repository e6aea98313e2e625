// SPDX-License-Identifier: Apache-2.0
#include "agent/migration/command_books.h"

#include <cerrno>
#include <filesystem>
#include <vector>

#include "gateway/disk/durable_file.h"

namespace rocegw::agent {

namespace fs = std::filesystem;

std::string CommandBooks::PathOf(const std::string& migration) const {
  return folder_ + "/" + migration + ".json";
}

StatusOr<migration::CommandBook*> CommandBooks::Open(const std::string& migration,
                                                     int64_t incarnation) {
  auto book = Load(migration);
  if (!book.ok()) return book;
  if ((*book)->incarnation() > incarnation)
    return Status(ESTALE, "a later migration of this name has run here");
  if ((*book)->incarnation() < incarnation) **book = migration::CommandBook(incarnation);
  return book;
}

StatusOr<migration::CommandBook*> CommandBooks::Load(const std::string& migration) {
  const auto known = books_.find(migration);
  if (known != books_.end()) return &known->second;
  auto text = ReadSmallFile(PathOf(migration));
  if (!text.ok() && text.status().error() != ENOENT) return text.status();
  migration::CommandBook book;
  if (text.ok()) {
    std::string problem;
    book = migration::CommandBook::Read(*text, problem);
    if (!problem.empty()) return Status(EUCLEAN, PathOf(migration) + ": " + problem);
  } else {
    RemoveOldest();
  }
  return &(books_[migration] = std::move(book));
}

Status CommandBooks::Save(const std::string& migration) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return {error.value(), folder_ + ": " + error.message()};
  return WriteDurably(PathOf(migration), books_.at(migration).Json(), 0600);
}

void CommandBooks::RemoveOldest() {
  std::error_code error;
  std::multimap<fs::file_time_type, fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() == ".json")
      files.emplace(fs::last_write_time(entry.path(), error), entry.path());
  }
  while (files.size() >= kMost) {
    books_.erase(files.begin()->second.stem());
    fs::remove(files.begin()->second, error);
    files.erase(files.begin());
  }
}

}  // namespace rocegw::agent
