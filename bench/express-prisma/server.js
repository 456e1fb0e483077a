// The compared operations as a typical Express 5 application with Prisma 7. Listens on PORT, uses the database at
// DATABASE_URL, and accepts tokens signed with JWT_SECRET.
import { PrismaPg } from '@prisma/adapter-pg'
import express from 'express'
import jwt from 'jsonwebtoken'

import { PrismaClient } from './generated/index.js'

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) })
const app = express()

const club = { select: { name: true, imageUrl: true } }

app.get('/events', async (req, res) => {
  const page = parseInt(req.query.page) || 1
  const limit = parseInt(req.query.limit) || 12
  const sort = req.query.sort === 'asc' ? 'asc' : 'desc'
  const [events, total] = await Promise.all([
    prisma.event.findMany({
      include: { club, _count: { select: { registrations: true } } },
      orderBy: [{ date: sort }, { id: 'asc' }],
      skip: (page - 1) * limit,
      take: limit,
    }),
    prisma.event.count(),
  ])
  res.set('cache-control', 'public, s-maxage=60, stale-while-revalidate=120').json({
    events: events.map(({ _count, ...event }) => ({ ...event, registrationCount: _count.registrations })),
    pagination: { page, pages: Math.ceil(total / limit), total, limit },
  })
})

app.get('/auth/me', authenticate, async (req, res) => {
  const user = await prisma.user.findUnique({
    where: { id: req.user.sub },
    select: {
      id: true,
      firstName: true,
      lastName: true,
      email: true,
      avatar: true,
      role: true,
      club: { select: { id: true, name: true, imageUrl: true } },
    },
  })
  if (!user) return res.status(401).json({ message: 'Unauthorized' })
  res.set({ 'cache-control': 'no-store', vary: 'Authorization, Cookie' }).json({ user })
})

app.post('/events/:eventId/register', authenticate, async (req, res) => {
  try {
    const registration = await prisma.eventRegistration.create({
      data: { userId: req.user.sub, eventId: req.params.eventId },
      include: { event: { select: { title: true } }, user: { select: { firstName: true, lastName: true } } },
    })
    res.status(201).json({ registration })
  } catch (error) {
    if (error.code !== 'P2002') throw error
    res.status(400).json({ message: 'You have already registered for this event' })
  }
})

function authenticate (req, res, next) {
  const token = req.headers.authorization?.split(' ')[1]
  if (!token) return res.status(401).json({ message: 'Access token required' })
  try {
    req.user = jwt.verify(token, process.env.JWT_SECRET, { algorithms: ['HS256'] })
  } catch {
    return res.status(401).json({ message: 'Invalid or expired token' })
  }
  next()
}

app.use((error, _req, res, _next) => {
  console.error(error)
  res.status(500).json({ message: 'Internal server error' })
})

app.listen(Number(process.env.PORT), '127.0.0.1')
