// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/settings.h"

#include <fstream>
#include <sstream>

namespace kv {
namespace {

bool ReadYes(std::istream& words, bool& out) {
  std::string word;
  words >> word;
  out = word == "yes";
  return word == "yes" || word == "no";
}

bool ReadTransport(std::istream& words, Transport& out) {
  std::string word;
  words >> word;
  out = word == "rdma" ? Transport::kRdma : Transport::kTcp;
  return word == "rdma" || word == "tcp";
}

bool ReadLine(const std::string& key, std::istream& words, Settings& settings) {
  if (key == "name") return !!(words >> settings.own.name);
  if (key == "listen") return !!(words >> settings.own.address >> settings.own.port);
  if (key == "rdma_port") return !!(words >> settings.rdma_port);
  if (key == "folder") return !!(words >> settings.folder);
  if (key == "transport") return ReadTransport(words, settings.transport);
  if (key == "sync") return ReadYes(words, settings.sync);
  if (key == "fallback") return ReadYes(words, settings.fallback);
  if (key == "number") {
    int number = 0;
    words >> number;
    settings.number = static_cast<uint8_t>(number);
    return number >= 1 && number <= 255;
  }
  if (key == "replica") {
    Place& place = settings.others.emplace_back();
    return !!(words >> place.name >> place.address >> place.port);
  }
  return false;
}

}  // namespace

Settings ReadSettings(const std::string& path, std::string& problem) {
  Settings settings;
  std::ifstream file(path);
  if (!file) problem = path + ": cannot be read";
  for (std::string line; problem.empty() && std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key) || key.starts_with('#')) continue;
    if (!ReadLine(key, words, settings)) problem = path + ": not understood: " + line;
  }
  if (problem.empty() &&
      (settings.own.name.empty() || settings.own.port == 0 || settings.rdma_port == 0 ||
       settings.number == 0 || settings.folder.empty()))
    problem = path + ": name, number, listen, rdma_port and folder are needed";
  return settings;
}

std::vector<Place> ReadPlaces(const std::string& text) {
  std::vector<Place> places;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t colon = item.rfind(':');
    int port = 0;
    if (colon == std::string::npos || !(std::istringstream(item.substr(colon + 1)) >> port) ||
        port < 1 || port > 65535)
      return {};
    places.push_back(
        {.name = item, .address = item.substr(0, colon), .port = static_cast<uint16_t>(port)});
  }
  return places;
}

}  // namespace kv
