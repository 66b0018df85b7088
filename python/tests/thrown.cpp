// Procedures whose exceptions say something in another encoding than UTF-8, or too much of it, or
// nothing.
#include <exception>
#include <stdexcept>
#include <string>

extern "C" int latin_1(int) {
  throw std::runtime_error("caf\xe9 is closed");
}

extern "C" int too_long(int letters) {
  std::string text(static_cast<std::size_t>(letters), 'x');
  for (int i = 0; i < 300; ++i) text += "\xe2\x82\xac";
  throw std::runtime_error(text);
}

extern "C" int any_bytes(int first) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(1 + (first + i * 7) % 255);
  throw std::runtime_error(text);
}

class wordless : public std::exception {
 public:
  const char* what() const noexcept override { return nullptr; }
};

extern "C" int no_text(int) {
  throw wordless();
}
