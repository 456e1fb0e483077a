# Takes the place of node:24-slim: Debian, Node.js, npm and the user node.
FROM localhost/debian
COPY node/bin/node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --create-home node
CMD ["node"]
